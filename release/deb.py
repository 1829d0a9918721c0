"""A Debian package. The program is static, so that it depends on nothing."""

import hashlib
import textwrap
from email.utils import formatdate

from archives import ar, tar, xz
from common import DESCRIPTION, MACHINES, NAME, SUMMARY, File, epoch, under, version
from contents import packed

MAINTAINER = "pgrig maintainers <maintainers@pgrig.invalid>"
MOVED = {"share/zsh/site-functions/": "share/zsh/vendor-completions/"}
OVERRIDES = """\
# One static program serves all releases of Debian.
pgrig: statically-linked-binary
pgrig: shared-library-lacks-prerequisites [usr/bin/pgrig]
# The package is not made for Debian's own archive.
pgrig: initial-upload-closes-no-bugs
"""


def deb(files, machine):
    """The name of the file, and its bytes."""
    architecture = MACHINES[machine]
    files = {move(path): file for path, file in files.items()}
    documents = f"share/doc/{NAME}"
    upstream = files.pop(f"{documents}/CHANGELOG.md").content
    apache = files.pop(f"{documents}/LICENSE-APACHE").content
    mit = files.pop(f"{documents}/LICENSE-MIT").content
    assert b"Apache License" in apache
    third_party = files.pop(f"{documents}/THIRD-PARTY").content
    files |= {
        f"{documents}/changelog.gz": File(packed(upstream)),
        f"{documents}/changelog.Debian.gz": File(packed(changelog().encode())),
        f"{documents}/copyright": File(copyright(mit.decode()).encode()),
        f"{documents}/THIRD-PARTY.gz": File(packed(third_party)),
        f"share/lintian/overrides/{NAME}": File(OVERRIDES.encode()),
    }
    files = under("usr", files)
    sums = "".join(f"{hashlib.md5(file.content).hexdigest()}  {path}\n" for path, file in sorted(files.items()))
    size = sum(-(-len(file.content) // 1024) for file in files.values())
    control = {"control": File(control_file(architecture, size).encode()), "md5sums": File(sums.encode())}
    members = {"debian-binary": b"2.0\n", "control.tar.xz": xz(tar(control, "./")), "data.tar.xz": xz(tar(files, "./"))}
    return f"{NAME}_{debian_version()}_{architecture}.deb", ar(members)


def move(path):
    for old, new in MOVED.items():
        if path.startswith(old):
            return new + path.removeprefix(old)
    return path


def debian_version():
    return f"{version()}-1"


def control_file(architecture, size):
    text = textwrap.fill(DESCRIPTION, 76, initial_indent=" ", subsequent_indent=" ")
    return f"""\
Package: {NAME}
Version: {debian_version()}
Section: database
Priority: optional
Architecture: {architecture}
Maintainer: {MAINTAINER}
Installed-Size: {size}
Recommends: ca-certificates
Suggests: postgresql
Description: {SUMMARY}
{text}
"""


def changelog():
    return f"""\
{NAME} ({debian_version()}) unstable; urgency=medium

  * Release {version()}: see changelog.gz.

 -- {MAINTAINER}  {formatdate(epoch())}
"""


def copyright(mit):
    """Licences as Debian writes them: the Apache licence by its place, the other as text."""
    holder, text = mit.split("\n\n", 2)[1:]
    holder = holder.removeprefix("Copyright (c) ")
    mit = "\n".join(" " + (line or ".") for line in text.strip().splitlines())
    return f"""\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: {NAME}

Files: *
Copyright: {holder}
License: MIT or Apache-2.0
Comment: The program contains libraries of others, whose licences are in
 /usr/share/doc/{NAME}/THIRD-PARTY.gz.

License: MIT
{mit}

License: Apache-2.0
 On Debian systems the text of this licence is in
 /usr/share/common-licenses/Apache-2.0.
"""
