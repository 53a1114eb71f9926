#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A directory as a network's file system shows it.  usage: network_files.py SOURCE MOUNTPOINT LATE

A handle of a file that was replaced or removed on the server is stale (ESTALE).  While the file LATE exists, names, attributes
and listings that were asked for before stay as they were, while what is read is what the server has.  Read-only.  Speaks FUSE
with the kernel itself: only so may each file of the server be one of the kernel's, whatever its name.  Needs root.
"""

import ctypes
import errno
import os
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = (
    1, 2, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29, 36, 38, 42)
HEAD = struct.Struct("<IIQQIIII")
ASYNC_READ, AUTO_INVALIDATE = 1, 1 << 12
BUFFER = 1 << 18


def attributes(s):
    times = s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns
    return struct.pack("<6Q10I", s.st_ino, s.st_size, s.st_blocks, *(t // 10**9 for t in times), *(t % 10**9 for t in times), s.st_mode,
                       s.st_nlink, s.st_uid, s.st_gid, 0, 4096, 0)


class Files:
    def __init__(self, source, late):
        # By number: a path, and a descriptor, so that no other file gets the inode.
        self.late, self.paths, self.handles, self.numbers, self.kept = late, {1: source}, {1: os.open(source, os.O_PATH)}, {}, {}
        self.answers = {
            LOOKUP: self.lookup, GETATTR: self.getattr, OPEN: self.open, READ: self.read, RELEASE: self.release, FLUSH: self.nothing,
            OPENDIR: self.nothing_open, READDIR: self.readdir, RELEASEDIR: self.nothing, STATFS: self.statfs, INIT: self.init}

    def current(self, key, make):
        """What `make` gives or fails with; while attributes are late what it did before."""
        if key not in self.kept or not os.path.exists(self.late):
            try:
                self.kept[key] = make()
            except OSError as e:
                self.kept[key] = e
        if isinstance(self.kept[key], OSError):
            raise self.kept[key]
        return self.kept[key]

    def stat(self, node):
        """Attributes of a file that is the same as when it was found."""

        def make():
            s = os.stat(self.handles[node])
            if s.st_nlink == 0:
                raise OSError(errno.ESTALE, "")
            return s

        return self.current(("attributes", node), make)

    def init(self, unused_node, unused_data):
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, 1 << 17, ASYNC_READ | AUTO_INVALIDATE, 16, 16, 1 << 17, 1, 32, 0, 0, *[0] * 7)

    def lookup(self, node, data):
        path = os.path.join(self.paths[node], os.fsdecode(data[:-1]))

        def make():
            handle = os.open(path, os.O_PATH | os.O_NOFOLLOW)
            s = os.stat(handle)
            number = self.numbers.setdefault((s.st_dev, s.st_ino), len(self.numbers) + 2)
            if number in self.paths:
                os.close(handle)
            else:
                self.paths[number], self.handles[number] = path, handle
            return number

        number = self.current(("name", path), make)
        return struct.pack("<4QII", number, 0, 0, 0, 0, 0) + attributes(self.stat(number))

    def getattr(self, node, unused_data):
        return struct.pack("<QII", 0, 0, 0) + attributes(self.stat(node))

    def open(self, node, data):
        if struct.unpack_from("<I", data)[0] & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, "")
        fd = os.open(f"/proc/self/fd/{self.handles[node]}", os.O_RDONLY)
        if os.stat(fd).st_nlink == 0:
            os.close(fd)
            raise OSError(errno.ESTALE, "")
        return struct.pack("<QII", fd, 0, 0)

    def read(self, unused_node, data):
        fd, offset, size = struct.unpack_from("<QQI", data)
        if os.fstat(fd).st_nlink == 0:
            raise OSError(errno.ESTALE, "")
        return os.pread(fd, size, offset)

    def release(self, unused_node, data):
        os.close(struct.unpack_from("<Q", data)[0])
        return b""

    def nothing(self, unused_node, unused_data):
        return b""

    def nothing_open(self, unused_node, unused_data):
        return bytes(16)

    def readdir(self, node, data):
        offset, size = struct.unpack_from("<QI", data, 8)
        names = self.current(("names", node), lambda: os.listdir(self.paths[node]))
        out = b""
        for i, name in enumerate(names[offset:], offset + 1):
            text = os.fsencode(name)
            entry = struct.pack("<QQII", 1, i, len(text), 0) + text + bytes(-len(text) % 8)
            if len(out) + len(entry) > size:
                break
            out += entry
        return out

    def statfs(self, unused_node, unused_data):
        return struct.pack("<5Q4I6I", 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, 255, 4096, 0, *[0] * 6)

    def serve(self, device):
        while True:
            try:
                request = os.read(device, BUFFER)
            except OSError as e:
                if e.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                    continue
                return  # unmounted
            unused_length, kind, unique, node = HEAD.unpack_from(request)[:4]
            if kind == DESTROY:
                return
            if kind in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            error, answer = 0, b""
            try:
                answer = self.answers[kind](node, request[HEAD.size:])
            except KeyError:
                error = errno.ENOSYS
            except OSError as e:
                error = e.errno
            try:
                os.write(device, struct.pack("<IiQ", 16 + len(answer), -error, unique) + answer)
            except OSError as e:
                if e.errno != errno.ENOENT:  # of a request that was interrupted
                    return


def main():
    source, mountpoint, late = sys.argv[1:]
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"network", mountpoint.encode(), b"fuse", 1 | 2 | 4, options.encode()) != 0:  # read-only, no programs, no devices
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    Files(source, late).serve(device)


if __name__ == "__main__":
    main()
