"""What is kept of an image's files, and that nothing leads out of them."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from envcheck.image.tree import Tree, unpack
from envcheck.image.trouble import EngineError
from envcheck.payloads import elf_headers
from tests.image.tars import tar, tree


def test_links_stay_below_the_folder(tmp_path: Path) -> None:
    """Absolute ones begin at the image's own `/`, and no step leads above it."""
    secret = tmp_path / "secret"
    secret.write_text("the machine's own")
    made = tree(
        tmp_path / "image",
        {
            "etc/os-release": ("link", "/usr/lib/os-release"),
            "usr/lib/os-release": "ID=own\n",
            "etc/debian_version": ("link", "../../../../../../../../" + str(secret)[1:]),
            "a/pyvenv.cfg": ("link", str(secret)),
        },
    )
    assert made.resolve("/etc/os-release") == "/usr/lib/os-release"
    assert made.place("/etc/os-release").read_text() == "ID=own\n"
    for path in ("/etc/debian_version", "/a/pyvenv.cfg"):
        assert made.resolve(path) is None
        assert not made.place(path).exists()
        target = (made.place(path).parent / made.place(path).readlink()).resolve()
        assert target.is_relative_to(made.folder)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    made = tree(
        tmp_path / "image",
        {
            "evil": ("link", str(outside)),
            "evil/pyvenv.cfg": "home = /\n",
            "up/../../pyvenv.cfg": "home = /\n",
            "/etc/os-release": "ID=absolute\n",
        },
    )
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "pyvenv.cfg").exists()
    assert made.place("/pyvenv.cfg").read_text() == "home = /\n"
    assert made.place("/etc/os-release").read_text() == "ID=absolute\n"


def test_a_circle_of_links_leads_nowhere(tmp_path: Path) -> None:
    made = tree(tmp_path, {"a": ("link", "b"), "b": ("link", "a"), "c": ("link", "c/c")})
    assert [made.resolve(path) for path in ("/a", "/b/x", "/c")] == [None, None, None]
    assert made.entry("/a/x") is None
    entry = made.entry("/a")
    assert entry is not None
    assert (entry.kind, entry.target) == ("link", "b")


def test_only_what_is_read_is_kept(tmp_path: Path) -> None:
    made = tree(
        tmp_path,
        {
            "opt/v/pyvenv.cfg": "home = /usr/bin\n",
            "opt/v/secret.txt": "token",
            "opt/v/x-1.dist-info/METADATA": "Name: x\n",
            "opt/v/x-1.dist-info/LICENSE": "long\n",
        },
    )
    kept = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert kept == ["opt/v/pyvenv.cfg", "opt/v/x-1.dist-info/METADATA"]
    assert made.names["/opt/v"] == {"pyvenv.cfg", "secret.txt", "x-1.dist-info"}
    assert made.entries["/opt/v/secret.txt"].kept is False


def test_of_a_library_the_headers_are_kept(tmp_path: Path) -> None:
    """The reader finds the same in what is kept as in the whole file, which takes no room."""
    library = tmp_path / "libcudnn.so.9"
    code = tmp_path / "code.c"
    code.write_text(
        "const char big[8 << 20] = {1};\n"
        + "".join(f"int symbol_number_{n}(void) {{ return {n}; }}\n" for n in range(500))
    )
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcudnn.so.9,-rpath,$ORIGIN/../lib", "-o",
         str(library), str(code), "-lm", "-Wl,--no-as-needed", "-lpthread"],
        check=True,
    )  # fmt: skip
    made = tree(
        tmp_path / "image",
        {
            "opt/lib/libcudnn.so.9": library.read_bytes(),
            "opt/lib/libcudnn.so": ("link", "libcudnn.so.9"),
            "opt/other/libcudnn.so.9": ("hard", "opt/lib/libcudnn.so.9"),
        },
    )
    whole = elf_headers.elf(str(library))  # type: ignore[no-untyped-call]
    assert whole["soname"] == "libcudnn.so.9"
    for path in ("opt/lib/libcudnn.so.9", "opt/lib/libcudnn.so", "opt/other/libcudnn.so.9"):
        place = made.place(f"/{path}")
        assert elf_headers.elf(str(place)) == whole  # type: ignore[no-untyped-call]
        assert place.stat().st_size == library.stat().st_size
        assert place.stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize("program", ["python3", "gcc", "bash"])
def test_programs_of_this_machine_read_the_same(tmp_path: Path, program: str) -> None:
    found = Path(shutil.which(program) or "").resolve()
    made = tree(tmp_path, {"usr/bin/python3.12": found.read_bytes()})
    kept = str(made.place("/usr/bin/python3.12"))
    assert elf_headers.elf(kept) == elf_headers.elf(str(found))  # type: ignore[no-untyped-call]


def test_a_stream_that_ends_early_is_no_image(tmp_path: Path) -> None:
    data = tar({"usr/lib/os-release": "ID=x\n" * 1000}).getvalue()
    for stream in (b"", b"not a tar at all" * 100, data[:1500]):
        with pytest.raises(EngineError, match="its export cannot be read"):
            unpack(io.BytesIO(stream), Tree(tmp_path))
