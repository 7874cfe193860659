"""Stop a process at the N-th system call of its write path: kill it there, or let the call fail.

What ``strace --inject`` does, with nothing but Python: a filter in the kernel (seccomp) stops the
traced process at the calls that are named here and at no other, and the tracer (ptrace) decides.
Linux on x86-64 and on arm64.

Source: ptrace(2), seccomp(2), syscall(2).
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable
from typing import NamedTuple

# Names and numbers of the calls that create, change, flush or remove a file.
_NUMBERS = {
    "x86_64": {
        "write": 1, "pwrite64": 18, "writev": 20, "fsync": 74, "fdatasync": 75, "truncate": 76,
        "ftruncate": 77, "rename": 82, "mkdir": 83, "unlink": 87, "openat": 257, "mkdirat": 258,
        "unlinkat": 263, "renameat": 264, "fallocate": 285, "pwritev": 296, "renameat2": 316,
    },
    "aarch64": {
        "mkdirat": 34, "unlinkat": 35, "renameat": 38, "truncate": 45, "ftruncate": 46,
        "fallocate": 47, "openat": 56, "write": 64, "writev": 66, "pwrite64": 68, "pwritev": 70,
        "fsync": 82, "fdatasync": 83, "renameat2": 276,
    },
}  # fmt: skip
# Where the number, the first three arguments and the result of a call stand among the registers.
_REGISTERS = {"x86_64": (27, 15, (14, 13, 12), 10), "aarch64": (34, 8, (0, 1, 2), 0)}

_TRACEME, _CONT, _SETOPTIONS, _GETREGSET, _SETREGSET = 0, 7, 0x4200, 0x4204, 0x4205
_OPTIONS = 0x1 << 3 | 0x1 << 7 | 0x1 << 20  # clones too, seccomp's stops, kill with the tracer
_EVENT_SECCOMP = 7
_PRSTATUS, _ARM_SYSTEM_CALL = 1, 0x404
_WALL = 0x40000000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_ALLOW, _TRACE = 0x7FFF0000, 0x7FF00000
_CREATES = os.O_CREAT

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Call(NamedTuple):
    """A call of the write path at which the process stands."""

    name: str
    number: int
    """From 1, among all such calls of the process."""


Decide = Callable[[Call], "int | None"]
"""None lets the call pass, 0 kills the process before it, else it fails with this errno."""


def is_supported() -> bool:
    """Tell whether this machine can do it."""
    return sys.platform == "linux" and platform.machine() in _NUMBERS


def run(work: Callable[[], None], decide: Decide) -> tuple[int, list[Call]]:
    """Run a function in a forked process under the tracer; to be called from one thread only.

    Returns:
        The exit code, negative for a signal, and all calls that the process came to.
    """
    child = os.fork()
    if child == 0:
        try:
            _offer_to_tracer()
            work()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(99)
    return _Tracer(child, decide).run()


def _offer_to_tracer() -> None:
    _libc.ptrace(_TRACEME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)
    _install_filter(sorted(_NUMBERS[platform.machine()].values()))


def _install_filter(numbers: list[int]) -> None:
    """Let the kernel stop at these calls only; all others run at full speed."""
    load, jump_if_equal, give_back = 0x20, 0x15, 0x06
    program = [struct.pack("<HBBI", load, 0, 0, 0)]
    for place, number in enumerate(numbers):
        to_trace = len(numbers) - place
        program.append(struct.pack("<HBBI", jump_if_equal, to_trace, 0, number))
    program += [struct.pack("<HBBI", give_back, 0, 0, code) for code in (_ALLOW, _TRACE)]
    octets = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(octets))
    _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if _libc.prctl(_SECCOMP, _FILTER, ctypes.c_char_p(header), 0, 0):
        raise OSError(ctypes.get_errno(), "no filter can be installed")


class _Tracer:
    def __init__(self, child: int, decide: Decide) -> None:
        self._child = child
        self._decide = decide
        self._calls: list[Call] = []
        machine = platform.machine()
        self._names = {number: name for name, number in _NUMBERS[machine].items()}
        self._size, self._number, self._arguments, self._result = _REGISTERS[machine]
        self._is_arm = machine == "aarch64"

    def run(self) -> tuple[int, list[Call]]:
        os.waitpid(self._child, _WALL)
        _libc.ptrace(_SETOPTIONS, self._child, None, _OPTIONS)
        _libc.ptrace(_CONT, self._child, None, None)
        while True:
            thread, status = os.waitpid(-1, _WALL)
            if os.WIFSTOPPED(status):
                self._stopped(thread, status)
            elif thread == self._child:
                return os.waitstatus_to_exitcode(status), self._calls

    def _stopped(self, thread: int, status: int) -> None:
        deliver = 0
        if status >> 16 == _EVENT_SECCOMP:
            self._at_call(thread)
        elif status >> 16 == 0 and os.WSTOPSIG(status) not in {signal.SIGSTOP, signal.SIGTRAP}:
            deliver = os.WSTOPSIG(status)
        _libc.ptrace(_CONT, thread, None, deliver)

    def _at_call(self, thread: int) -> None:
        registers = self._read(thread)
        name = self._names[registers[self._number]]
        arguments = [registers[place] for place in self._arguments]
        if not _is_of_the_write_path(name, arguments):
            return
        call = Call(name, len(self._calls) + 1)
        self._calls.append(call)
        errno = self._decide(call)
        if errno == 0:
            os.kill(self._child, signal.SIGKILL)
        elif errno is not None:
            self._fail(thread, registers, errno)

    def _read(self, thread: int) -> list[int]:
        registers = (ctypes.c_uint64 * self._size)()
        self._exchange(_GETREGSET, thread, _PRSTATUS, registers)
        return list(registers)

    def _fail(self, thread: int, registers: list[int], errno: int) -> None:
        """Take the call away and put its answer in place."""
        registers[self._result] = 2**64 - errno
        if self._is_arm:
            self._exchange(_SETREGSET, thread, _ARM_SYSTEM_CALL, (ctypes.c_int32 * 1)(-1))
        else:
            registers[self._number] = 2**64 - 1
        self._exchange(_SETREGSET, thread, _PRSTATUS, (ctypes.c_uint64 * self._size)(*registers))

    def _exchange(self, request: int, thread: int, kind: int, values: ctypes.Array) -> None:
        where = (ctypes.c_uint64 * 2)(ctypes.addressof(values), ctypes.sizeof(values))
        if _libc.ptrace(request, thread, kind, ctypes.addressof(where)) == -1:
            raise OSError(ctypes.get_errno(), "ptrace")


def _is_of_the_write_path(name: str, arguments: list[int]) -> bool:
    if name == "openat":
        return bool(arguments[2] & _CREATES)
    return not (name in {"write", "writev"} and arguments[0] in {1, 2})  # messages
