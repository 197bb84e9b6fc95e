"""Start of `envcheck.pyz`: unpacks it once into the user's cache, and runs envcheck from there.

Any Python gets as far as the line about its version, so this file is written for old ones.
"""

import os
import sys


def unpacked(archive):
    """Folder with the contents of this archive, kept for the next run where that is safe."""
    import zipfile

    with zipfile.ZipFile(archive) as opened:
        name = "pyz-" + opened.read("digest").decode("ascii")
        kept = _cache()
        if kept is not None:
            target = os.path.join(kept, name)
            if os.path.isdir(target):
                return target
            made = _extracted(opened, kept)
            if made is not None:
                try:
                    os.rename(made, target)
                except OSError:  # another run was faster
                    _remove(made)
                if os.path.isdir(target):
                    return target
        made = _extracted(opened, None)
    if made is None:
        sys.exit("envcheck: no folder to unpack into: set TMPDIR to one that can be written")
    import atexit

    atexit.register(_remove, made)
    return made


def _cache():
    """The cache folder, made if need be; None unless it belongs to this user alone."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):
        return None
    folder = os.path.join(base, "envcheck")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        about = os.lstat(folder)
        # What lies there is run: under sudo, a home folder may still be somebody else's.
        import stat

        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            return None
        for parent in (base, os.path.dirname(base)):
            if os.stat(parent).st_uid not in (0, os.geteuid()):
                return None
    except OSError:
        return None
    return folder


def _extracted(opened, parent):
    """A new folder with what the archive holds; None where it cannot be written."""
    import tempfile

    made = None
    try:
        made = tempfile.mkdtemp(prefix="envcheck-", dir=parent)
        for name in opened.namelist():
            if name.startswith("site/"):
                target = os.path.join(made, *name.split("/")[1:])
                if not os.path.isdir(os.path.dirname(target)):
                    os.makedirs(os.path.dirname(target))
                with open(target, "wb") as file:
                    file.write(opened.read(name))
    except OSError:
        if made is not None:
            _remove(made)
        return None
    return made


def _remove(folder):
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def main():
    """Run envcheck; its exit status."""
    if sys.version_info < (3, 10):
        sys.stderr.write(
            "envcheck: needs Python 3.10 or newer, this is %d.%d: start it with a newer one, and"
            " name the environment to judge with --python\n" % sys.version_info[:2]
        )
        return 2
    archive = os.path.dirname(os.path.abspath(__file__))
    # In the archive's place, which is in front of everything that this Python has installed.
    sys.path[0] = unpacked(archive)
    from envcheck.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
