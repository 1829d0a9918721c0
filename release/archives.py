"""Archives whose bytes depend on their files alone: sorted, owned by root, with the time of the commit."""

import io
import lzma
import tarfile
import zipfile
from datetime import datetime, timezone
from pathlib import PurePosixPath

import zlib

from common import epoch


def directories(files):
    return {str(parent) for path in files for parent in PurePosixPath(path).parents} - {"."}


def tar(files, root=""):
    """A tar archive of the files and their directories."""
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(directories(files) | files.keys() | ({"."} if root else set())):
            entry = tarfile.TarInfo(root + path if path != "." else "./")
            entry.mtime = epoch()
            entry.uname = entry.gname = "root"
            if path in files:
                entry.mode, entry.size = files[path].mode, len(files[path].content)
                archive.addfile(entry, io.BytesIO(files[path].content))
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
    return inner.getvalue()


def gzip(content):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(content) + packer.flush()


def xz(content):
    return lzma.compress(content, preset=6)


def zip(files):
    inner = io.BytesIO()
    time = datetime.fromtimestamp(epoch(), timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in files:
            entry = zipfile.ZipInfo(path, time)
            # Made on Unix, where a file has a mode.
            entry.create_system = 3
            entry.external_attr = (0o100000 | files[path].mode) << 16
            archive.writestr(entry, files[path].content, zipfile.ZIP_DEFLATED, 9)
    return inner.getvalue()


def ar(members):
    """As dpkg reads it."""
    parts = [b"!<arch>\n"]
    for name, content in members.items():
        parts.append(f"{name:<16}{epoch():<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode())
        parts.append(content + b"\n" * (len(content) % 2))
    return b"".join(parts)
