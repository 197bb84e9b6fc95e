"""Describes a Python environment from its files; prints one JSON line. Run as a file.

Runs in the *target* interpreter, which may be any Python from 3.6 on with nothing installed, or in
another one with `--site` folders (for an environment whose own interpreter does not start). It
imports no framework and none of the packages that it describes.
"""

import ast
import io
import json
import os
import re
import sys

# The interpreter need not have put this script's folder on its path.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# A look at a machine leaves no file behind.
sys.dont_write_bytecode = True

import elf_headers  # noqa: E402 - found by the line above
from elf_headers import (  # noqa: E402
    arch_flags,
    elf,  # noqa: F401 - for the tests of this script
    executable_elf,
    jax_loading,
    listed,
    native_libraries,
    outer_libraries,
    torch_loading,
)

MARKER = "envcheck-json:"

# Distributions whose requirements and native libraries matter.
FRAMEWORKS = re.compile(
    r"(torch|torchvision|torchaudio|triton|jax|jaxlib|jax-cuda\d+-(plugin|pjrt)|tensorflow(-cpu|-gpu)?"
    r"|tf-nightly|keras|flax|lightning|pytorch-lightning|transformers|accelerate|deepspeed|xformers"
    r"|flash-attn(-\d)?|bitsandbytes|vllm|onnxruntime(-gpu)?|cupy(-cuda\d+x?)?|nemo-toolkit"
    r"|transformer-engine.*|cuda-toolkit|apex|numpy)$"
)
CUDA_OWNERS = re.compile(r"(nvidia-|torch|jax|tensorflow|onnxruntime|cupy)")


def read(path, limit=4000000):
    """Text of a file, None when it cannot be read."""
    try:
        # Opening a pipe would wait for a writer.
        if not os.path.isfile(path):
            return None
        with io.open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(limit)
    except (OSError, ValueError):
        return None


def normalised(name):
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def header(text, name):
    """First value of a header of METADATA or WHEEL."""
    match = re.search(r"^%s:[ \t]*(.*)$" % name, text, re.M)
    return match.group(1).strip() if match else None


def distributions(sites):
    """Installed distributions, the first of each name along the path, as Python would import it."""
    found = {}
    for site in sites:
        for entry in listed(site):
            if entry.endswith(".dist-info"):
                facts = dist_info(site, entry)
            elif entry.endswith((".egg-info", ".egg-link")):
                facts = egg_info(site, entry)
            else:
                continue
            # What pip could not remove is left under a name that starts so.
            if facts is not None and not entry.startswith("~") and facts["name"] not in found:
                found[facts["name"]] = facts
    return found


def dist_info(site, entry):
    """Facts of a wheel's folder; its folder tells name and version when METADATA is broken."""
    stem = entry[: -len(".dist-info")]
    name, _, version = stem.partition("-")
    folder = os.path.join(site, entry)
    name = normalised(name)
    facts = {"name": name, "version": version, "location": site, "record": folder}
    if not version or FRAMEWORKS.match(name) or name.startswith("nvidia-"):
        text = (read(os.path.join(folder, "METADATA"), 400000) or "").partition("\n\n")[0]
        facts["version"] = header(text, "Version") or version
        facts["name"] = normalised(header(text, "Name") or name)
        facts["requires"] = re.findall(r"^Requires-Dist:[ \t]*(.*)$", text, re.M)
        wheel = read(os.path.join(folder, "WHEEL"), 20000) or ""
        facts["build"] = header(wheel, "Tag")
        # Poetry writes its release behind its name.
        installer = (read(os.path.join(folder, "INSTALLER"), 200) or "").split()
        facts["installer"] = installer[0].lower() if installer else None
        facts.update(direct_url(os.path.join(folder, "direct_url.json")))
    return facts if facts["version"] else None


def direct_url(path):
    """How a distribution was named when it was installed by its address and not by its name.

    Only the file's name is kept: the address may hold secrets.
    """
    text = read(path, 100000)
    if text is None:
        return {"direct_url": None}
    try:
        data = json.loads(text)
        name = data["url"].partition("#")[0].partition("?")[0].rstrip("/").rpartition("/")[2]
        if "archive_info" in data:
            name = name.replace("%2B", "+").replace("%2b", "+")
            return {"direct_url": "archive", "wheel": name if name.endswith(".whl") else None}
        return {"direct_url": "vcs" if "vcs_info" in data else "folder"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {"direct_url": "unknown"}


def egg_info(site, entry):
    """Facts of the older form, a folder or a file."""
    stem = entry.rpartition(".egg-")[0]
    match = re.match(r"(.+?)-(\d[^-]*)", stem)
    text = read(os.path.join(site, entry, "PKG-INFO"), 100000) or read(
        os.path.join(site, entry), 100000
    )
    version = header(text or "", "Version") or (match.group(2) if match else None)
    if not version:
        return None
    name = header(text or "", "Name") or (match.group(1) if match else stem)
    return {"name": normalised(name), "version": version, "location": site}


def conda_packages(prefix):
    """Conda's own records: name, version, build string, channel."""
    folder = os.path.join(prefix, "conda-meta")
    found = []
    for entry in listed(folder):
        match = re.match(r"(.+)-([^-]+)-([^-]+)\.json$", entry)
        if not match:
            continue
        name, version, build = match.groups()
        facts = {"name": name, "version": version, "build": build}
        if re.match(
            r"(pytorch|libtorch|jaxlib|tensorflow|cudnn|nccl|cuda-|libcu|cudatoolkit)", name
        ):
            try:
                data = json.loads(read(os.path.join(folder, entry), 40000000) or "{}")
                channel = str(data.get("channel") or "").rstrip("/")
                channel = re.sub(r"/(noarch|(linux|win|osx)-\w+)$", "", channel)
                facts["channel"] = channel.split("/")[-1]
            except (ValueError, AttributeError, RecursionError):
                pass
        found.append(facts)
    return found


def version_file(path):
    """Assigned constants of a `version.py`, read as a syntax tree and never run."""
    text = read(path, 100000)
    if text is None:
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = {}
    for node in tree.body:
        targets = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        for target in targets:
            try:
                value = ast.literal_eval(node.value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue
            if isinstance(target, ast.Name) and (value is None or isinstance(value, (str, bool))):
                found[target.id] = value
    return found


def header_version(folder, name):
    """Version that a C header next to a library states, as parts by macro name."""
    for place in ("../include", "../../include", "../../../include"):
        text = read(os.path.join(folder, place, name), 100000)
        if text:
            return dict(
                re.findall(r"#define\s+(\w*(?:MAJOR|MINOR|PATCHLEVEL|PATCH))\s+(\d+)", text)
            )
    return None


def owners(found):
    """Which distributions claim each native CUDA file, by their RECORD; path to names."""
    claims = {}  # type: dict[str, list[str]]
    for name, facts in found.items():
        if not facts.get("record") or not CUDA_OWNERS.match(name):
            continue
        text = read(os.path.join(facts["record"], "RECORD"), 20000000) or ""
        for line in text.splitlines():
            path = line.partition(",")[0]
            if ".so" in path and not path.endswith(".pyc"):
                full = os.path.normpath(os.path.join(facts["location"], path))
                claims.setdefault(full, []).append(name)
    return claims


def python_facts():
    """The running interpreter."""
    import sysconfig

    tag = ""
    if sys.implementation.name == "cpython":
        free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
        tag = "cp%d%d%s" % (sys.version_info[0], sys.version_info[1], free)
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        libc = None
    if libc is None and any("musl" in name for name in listed("/lib")):
        libc = "musl"
    return {
        "version": "%d.%d.%d" % sys.version_info[:3],
        "executable": sys.executable,
        "elf": executable_elf(),
        "tegra": os.path.exists("/etc/nv_tegra_release") or os.uname().release.endswith("-tegra")
        if hasattr(os, "uname")
        else False,
        "prefix": sys.prefix,
        "base_prefix": getattr(sys, "base_prefix", sys.prefix),
        "implementation": sys.implementation.name,
        "tag": tag or None,
        "platform": sysconfig.get_platform().replace("-", "_").replace(".", "_"),
        "libc": libc,
        "externally_managed": os.path.exists(
            os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
        )
        and sys.prefix == getattr(sys, "base_prefix", sys.prefix),
    }


def environment_files(prefix):
    """Marks that tools leave in a prefix."""
    return {
        "pyvenv": read(os.path.join(prefix, "pyvenv.cfg"), 20000),
        "conda": os.path.isdir(os.path.join(prefix, "conda-meta")),
        "pipx": os.path.exists(os.path.join(prefix, "pipx_metadata.json")),
    }


def build_info(site):
    """What TensorFlow's build wrote down about itself: constants, and lists of them."""
    path = os.path.join(site, "tensorflow", "python", "platform", "build_info.py")
    text = read(path, 100000)
    found = {}
    try:
        for node in ast.walk(ast.parse(text or "")):
            # In a list of pairs or, some day, in a dictionary.
            pairs = []  # type: list[tuple[ast.expr | None, ast.expr]]
            if isinstance(node, ast.Tuple) and len(node.elts) == 2:
                pairs = [(node.elts[0], node.elts[1])]
            elif isinstance(node, ast.Dict):
                pairs = list(zip(node.keys, node.values))
            for key, value in pairs:
                if key is not None:
                    found[ast.literal_eval(key)] = ast.literal_eval(value)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return found if "is_cuda_build" in found else None


def versions_of(sites):
    """What frameworks say of themselves in a file, by the folder that Python would import."""
    found = {}
    for site in sites:
        for package in ("torch", "jaxlib", "tensorflow", "torchvision", "torchaudio"):
            facts = version_file(os.path.join(site, package, "version.py"))
            if facts is None and package == "tensorflow":
                facts = build_info(site)
            if facts is not None and package not in found:
                facts["location"] = site
                found[package] = facts
    return found


def loading(sites, versions):
    """How torch and JAX open CUDA libraries by path, where they are installed."""
    torch = versions.get("torch")
    return {
        "torch": torch_loading(torch["location"]) if torch and torch.get("cuda") else None,
        "jax": jax_loading(sites),
    }


def arches(package, torch, prefix):
    """Architectures in torch itself, for builds of which no table can know: not pip's wheels.

    The library that lists them has tens of megabytes, which takes longer than all the rest.
    """
    if not torch or not torch.get("cuda"):
        return None
    installer = (package or {}).get("installer")
    published = re.search(r"^[\d.]+(\+cu\d+)?$", torch.get("__version__") or "")
    if installer in ("pip", "uv", "poetry", "pdm") and published:
        return None
    # Conda keeps torch's libraries with all others.
    places = (os.path.join(torch["location"], "torch", "lib"), os.path.join(prefix, "lib"))
    paths = [os.path.join(each, "libtorch_python.so") for each in places]
    return next((arch_flags(each) for each in paths if os.path.isfile(each)), None)


def describe(sites, prefix, outer):
    """Everything below an environment's folders."""
    found = distributions(sites)
    versions = versions_of(sites)
    claims = owners(found)
    libraries = native_libraries(sites, prefix)
    for each in libraries:
        each["owners"] = claims.get(each["path"], [])
    outside = outer_libraries(outer, libraries)
    for each in outside:
        folder = os.path.dirname(each.get("real") or each["path"])
        if "libcudnn" in each["path"]:
            each["header"] = header_version(folder, "cudnn_version.h")
        elif "libnccl" in each["path"]:
            each["header"] = header_version(folder, "nccl.h")
    packages = []
    for facts in found.values():
        packages.append({key: value for key, value in facts.items() if key != "record"})
    return {
        "packages": packages,
        "conda_packages": conda_packages(prefix),
        "versions": versions,
        "arches": arches(found.get("torch"), versions.get("torch"), prefix),
        "loading": loading(sites, versions),
        "libraries": libraries,
        "outer_libraries": outside,
        "shared_files": {path: names for path, names in claims.items() if len(names) > 1},
        "files": environment_files(prefix),
    }


def working_folder():
    """Where this process stands; None when that is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def main(arguments):
    """`inspect_env.py [--site DIR]... [--prefix DIR] [--library-folder DIR]... [--root DIR]`.

    With `--root` the files are another system's, and all folders lie below that one; `--like` names
    a file of that system's code, whose kind can be loaded there.
    """
    options = {
        "--site": [],
        "--prefix": [],
        "--library-folder": [],
        "--root": [],
        "--like": [],
    }  # type: dict[str, list[str]]
    for option, value in zip(arguments[::2], arguments[1::2]):
        options[option].append(value)
    for folder in options["--root"]:
        elf_headers.ROOT = folder
    for path in options["--like"]:
        elf_headers.OWN_KIND = elf_headers.kind_of_code(path)
    here = os.path.dirname(os.path.abspath(__file__))
    answer = {}
    if options["--prefix"]:
        sites, prefix = options["--site"], options["--prefix"][0]
    else:
        # The script's folder stands where a user's program would have its own.
        sites = [
            each
            for each in sys.path
            if each and os.path.abspath(each) not in (here, working_folder())
        ]
        sites = [each for each in sites if os.path.isdir(each)]
        prefix = sys.prefix
        answer["python"] = python_facts()
    answer.update(describe(sites, prefix, options["--library-folder"]))
    # Names of files need not be text: what is none is shown as `?`.
    line = "\n" + MARKER + json.dumps(answer, ensure_ascii=False) + "\n"
    sys.stdout.flush()
    sys.stdout.buffer.write(line.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
