"""Linux systems in a directory: Debian, and one with nothing but busybox and musl, as Alpine is."""

import shutil
import subprocess
from pathlib import Path

# Its own mounts and processes: all end with the command.
ENTER = (
    'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
)
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
# What a download needs of this machine.
NETWORK = ["/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"]
MUSL = "/lib/x86_64-linux-musl/libc.so"
MUSL_LOADER = "lib/ld-musl-x86_64.so.1"


class Root:
    def __init__(self, directory):
        self.directory = Path(directory)
        for path in ["proc", "dev", "tmp", "root"]:
            (self.directory / path).mkdir(parents=True, exist_ok=True)
        (self.directory / "tmp").chmod(0o1777)
        for path in NETWORK:
            if Path(path).exists():
                self.add(path, Path(path).read_bytes())

    def add(self, path, content, mode=0o644):
        place = self.directory / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_bytes(content)
        place.chmod(mode)

    def run(self, *command, timeout=120):
        """Standard output of a command in it; an error with all output if it fails."""
        whole = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, self.directory, *command]
        return run(whole, timeout=timeout, env=ENVIRONMENT, cwd="/")


def run(command, timeout=120, **options):
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    ran = subprocess.run([str(word) for word in command], timeout=timeout, check=False, **options)
    if ran.returncode != 0:
        raise SystemExit(f"{command}\nended with {ran.returncode}\n{ran.stdout or ''}{ran.stderr or ''}")
    return ran.stdout


def check(condition, *what):
    if not condition:
        raise SystemExit("\n".join(str(part) for part in what))


def debian(directory):
    """The least Debian that has man and completions."""
    packages = "ca-certificates,man-db,bash-completion"
    run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", "bookworm", directory], timeout=400)
    return Root(directory)


def musl(directory):
    """Its only shared library is musl; the shell is static."""
    root = Root(directory)
    root.add("bin/busybox", Path(shutil.which("busybox")).read_bytes(), 0o755)
    for name in ["sh", "env", "cat", "id", "ls"]:
        (root.directory / "bin" / name).symlink_to("busybox")
    root.add(MUSL_LOADER, Path(MUSL).read_bytes(), 0o755)
    root.add("etc/passwd", b"root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
    root.add("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
    return root
