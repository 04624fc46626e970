"""A real S3 server for the tests: Ceph's object gateway over one monitor and one storage daemon.

Plain processes below one folder, data in memory, nothing of the machine's own configuration.
Debian: ``apt-get install --no-install-recommends radosgw ceph-mon ceph-osd``.

    python -m tests.services.radosgw FOLDER      # serves until Ctrl-C
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

PROGRAMS = ("ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "radosgw")
CONFIGURATION = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon},v1:127.0.0.1:{mon_v1}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = {folder}/keyring
mon data = {folder}/mon
osd data = {folder}/osd
run dir = {folder}
log file = {folder}/$name.log
mon cluster log file = {folder}/cluster.log
admin socket =
pid file =
# One copy of everything, held in memory.
osd objectstore = memstore
memstore device bytes = 2147483648
osd pool default size = 1
osd pool default min size = 1
mon allow pool size one = true
osd crush chooseleaf type = 0
# A monitor alone need not wait for others, nor count placement groups.
paxos propose interval = 0.02
paxos min wait = 0.01
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon max pg per osd = 1000
mon data avail crit = 1
auth allow insecure global id reclaim = false
[client.rgw]
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw thread pool size = 32
"""
PATIENCE_S = 60


OWNER = "demo"
"""The user made at the start."""


def missing() -> list[str]:
    """Programs that are not installed here."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def free_port() -> int:
    """A port nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Radosgw:
    """The server, running while it is used as a context.

    Args:
        folder: Empty; logs and keys go there.

    Attributes:
        url: Its S3 endpoint.
        key: Access key of the user made at the start.
        secret: That user's secret.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.key, self.secret = "demo-access-key", f"demo-secret-{uuid.uuid4().hex}"
        self._configuration = str(folder / "ceph.conf")
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Radosgw:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in ("rgw", "osd", "mon"):
            self._end(name)

    def add_user(self, user: str, key: str, secret: str) -> None:
        """Make a user with one pair of keys."""
        self._admin("user", "create", "--uid", user, "--display-name", user,
                    "--access-key", key, "--secret", secret)  # fmt: skip

    def add_key(self, key: str, secret: str) -> None:
        """Give the user made at the start another pair of keys."""
        self._admin("key", "create", "--uid", OWNER, "--key-type", "s3",
                    "--access-key", key, "--secret", secret)  # fmt: skip

    def remove_key(self, key: str) -> None:
        """Take a key of that user away; requests with it are refused from now on."""
        self._admin("key", "rm", "--uid", OWNER, "--key-type", "s3", "--access-key", key)

    def kill_gateway(self) -> None:
        """SIGKILL; what is stored stays."""
        self._end("rgw", hard=True)

    def start_gateway(self) -> None:
        """Start the gateway and wait until it answers."""
        self._spawn("rgw", "radosgw", "-n", "client.rgw", "-f")
        self._wait_for(self.port, "rgw")

    def _start(self) -> None:
        mon = free_port()
        fsid, osd = str(uuid.uuid4()), str(uuid.uuid4())
        for name in ("mon", "osd", "rgw"):
            (self.folder / name).mkdir(parents=True)
        values = {"fsid": fsid, "mon": mon, "mon_v1": free_port(), "port": self.port}
        text = CONFIGURATION.format(folder=self.folder, **values)
        Path(self._configuration).write_text(text)
        addresses = f"[v2:127.0.0.1:{mon},v1:127.0.0.1:{values['mon_v1']}]"
        keyring, map_ = self.folder / "keyring", self.folder / "monmap"
        self._run("ceph-authtool", keyring, "--create-keyring", "--gen-key", "-n", "mon.",
                  "--cap", "mon", "allow *")  # fmt: skip
        for name in ("client.admin", "client.rgw", "osd.0"):
            self._run("ceph-authtool", keyring, "--gen-key", "-n", name,
                      "--cap", "mon", "allow *", "--cap", "osd", "allow *")  # fmt: skip
        self._run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", addresses, map_)
        self._ceph("ceph-mon", "-i", "a", "--mkfs", "--monmap", map_, "--keyring", keyring)
        self._spawn("mon", "ceph-mon", "-i", "a", "-f")
        self._wait_for(mon, "mon")
        self._ceph("ceph", "osd", "new", osd)
        self._ceph("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        self._spawn("osd", "ceph-osd", "-i", "0", "-f")
        self.add_user(OWNER, self.key, self.secret)
        self.start_gateway()

    def _admin(self, *words: str) -> None:
        self._ceph("radosgw-admin", *words)

    def _ceph(self, program: str, *words: object) -> None:
        self._run(program, "-c", self._configuration, *words)

    def _run(self, program: str, *words: object) -> None:
        done = subprocess.run(
            [program, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S
        )
        if done.returncode:
            raise RuntimeError(f"{program} {words}: {done.stdout}{done.stderr}")

    def _spawn(self, name: str, program: str, *words: str) -> None:
        with open(self.folder / f"{name}.out", "ab") as log:
            self._running[name] = subprocess.Popen(
                [program, "-c", self._configuration, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C on the tests must not reach it before they are done with it.
                start_new_session=True,
            )

    def _end(self, name: str, hard: bool = False) -> None:
        process = self._running.pop(name, None)
        if process is not None:
            # Nothing of it is wanted again.
            process.kill() if hard or name != "rgw" else process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _wait_for(self, port: int, name: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self._running[name].poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        log = (self.folder / f"{name}.out").read_text(errors="replace")
        raise RuntimeError(f"{name} does not answer: {log[-2000:]}")


def main() -> None:
    """Serve until interrupted."""
    folder = Path(sys.argv[1]).absolute()
    with Radosgw(folder) as server:
        print(f"export AWS_ENDPOINT_URL={server.url} AWS_ACCESS_KEY_ID={server.key} "
              f"AWS_SECRET_ACCESS_KEY={server.secret}", flush=True)  # fmt: skip
        with suppress(KeyboardInterrupt):
            os.waitpid(-1, 0)


if __name__ == "__main__":
    main()
