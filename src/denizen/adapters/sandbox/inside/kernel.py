"""System calls for isolation that Python does not offer, and the seccomp filter (Linux; x86_64 and aarch64).

The filter is a classic BPF program, assembled here: reading, running listed programs and exiting are allowed; every
call that writes, connects, mounts, traces or makes namespaces fails. The filter holds for everything that the process
starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_libc = ctypes.CDLL(None, use_errno=True)

MACHINE = platform.machine()
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
_SYSCALLS = {
    "x86_64": {"pivot_root": 155, "capset": 126, "landlock": 444},
    "aarch64": {"pivot_root": 41, "capset": 91, "landlock": 444},
}
_CAPABILITY_VERSION = 0x20080522


def invoke(name: str, *args: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """Calls a function of the C library. Raises OSError with the function's name."""
    function = getattr(_libc, name)
    function.restype = ctypes.c_long
    converted = [ctypes.c_ulong(arg) if isinstance(arg, int) else arg for arg in args]
    result = int(function(*converted))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def system_call(name: str, *args: int | bytes | ctypes.Array[ctypes.c_char] | None, offset: int = 0) -> int:
    """Makes a system call that the C library has no function for."""
    known = _SYSCALLS.get(MACHINE)
    if known is None:
        raise OSError(0, f"{name}: not known on {MACHINE}")
    try:
        return invoke("syscall", known[name] + offset, *args)
    except OSError as error:
        raise OSError(error.errno, f"{name}: {os.strerror(error.errno or 0)}") from None


def unshare(flags: int) -> None:
    invoke("unshare", flags)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    invoke("mount", _text(source), _text(target), _text(kind), flags, _text(data))


def unmount(target: str, flags: int) -> None:
    invoke("umount2", _text(target), flags)


def pivot_root(new: str, old: str) -> None:
    system_call("pivot_root", _text(new), _text(old))


def control(option: int, argument: int = 0) -> None:
    invoke("prctl", option, argument, 0, 0, 0)


def drop_capabilities() -> None:
    """Drops all capabilities, for every program that this process may become."""
    header = ctypes.create_string_buffer(_CAPABILITY_VERSION.to_bytes(4, "little") + (0).to_bytes(4, "little"), 8)
    system_call("capset", header, ctypes.create_string_buffer(24))


def drop_bounding_set() -> None:
    """Empties the bounding set. Needs CAP_SETPCAP; stops at the first number that no capability has."""
    for number in range(64):
        try:
            control(PR_CAPBSET_DROP, number)
        except OSError as error:
            if error.errno != 22:
                raise
            return


def _text(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)


_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _ARCH = 0, 4
_FILTER_MODE = 2
_NEW_NAMESPACES = 0x7E020000
_WRITING = 0o3 | 0o100 | 0o1000 | 0o20000000
"""O_WRONLY, O_RDWR, O_CREAT, O_TRUNC and the bit of O_TMPFILE."""


def _read_numbers(table: str) -> dict[str, int]:
    return {name: int(number) for name, _, number in (entry.partition("=") for entry in table.split())}


# The allowed system calls with their numbers, which differ between architectures. The older calls (open, stat, fork
# ...) exist on x86_64 only.
_X86 = _read_numbers("""
    read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10 munmap=11 brk=12
    rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 ioctl=16 pread64=17 readv=19 writev=20 access=21 pipe=22
    select=23 sched_yield=24 mremap=25 madvise=28 dup=32 dup2=33 nanosleep=35 getpid=39 clone=56 fork=57 vfork=58
    execve=59 exit=60 wait4=61 kill=62 uname=63 fcntl=72 getcwd=79 chdir=80 fchdir=81 readlink=89 gettimeofday=96
    getrlimit=97 getrusage=98 sysinfo=99 getuid=102 getgid=104 geteuid=107 getegid=108 getppid=110 getpgrp=111
    getgroups=115 rt_sigpending=127 rt_sigtimedwait=128 rt_sigsuspend=130 sigaltstack=131 statfs=137 fstatfs=138
    arch_prctl=158 gettid=186 getxattr=191 lgetxattr=192 fgetxattr=193 listxattr=194 llistxattr=195 flistxattr=196
    time=201 futex=202 sched_getaffinity=204 getdents64=217 set_tid_address=218 restart_syscall=219 fadvise64=221
    clock_gettime=228 clock_getres=229 clock_nanosleep=230 exit_group=231 tgkill=234 waitid=247 openat=257
    newfstatat=262 readlinkat=267 faccessat=269 pselect6=270 ppoll=271 set_robust_list=273 splice=275 dup3=292
    pipe2=293 prlimit64=302 getrandom=318 copy_file_range=326 statx=332 rseq=334 clone3=435 close_range=436
    openat2=437 faccessat2=439
""")
_ARM = _read_numbers("""
    getxattr=8 lgetxattr=9 fgetxattr=10 listxattr=11 llistxattr=12 flistxattr=13 getcwd=17 dup=23 dup3=24 fcntl=25
    ioctl=29 statfs=43 fstatfs=44 faccessat=48 chdir=49 fchdir=50 openat=56 close=57 pipe2=59 getdents64=61
    lseek=62 read=63 write=64 readv=65 writev=66 pread64=67 pselect6=72 ppoll=73 splice=76 readlinkat=78
    newfstatat=79 fstat=80 exit=93 exit_group=94 waitid=95 set_tid_address=96 futex=98 set_robust_list=99
    nanosleep=101 clock_gettime=113 clock_getres=114 clock_nanosleep=115 sched_getaffinity=123 sched_yield=124
    restart_syscall=128 kill=129 tgkill=131 sigaltstack=132 rt_sigsuspend=133 rt_sigaction=134 rt_sigprocmask=135
    rt_sigpending=136 rt_sigtimedwait=137 rt_sigreturn=139 uname=160 getrlimit=163 getrusage=165 gettimeofday=169
    getpid=172 getppid=173 getuid=174 geteuid=175 getgid=176 getegid=177 gettid=178 sysinfo=179 getgroups=158
    brk=214 munmap=215 mremap=216 clone=220 execve=221 mmap=222 fadvise64=223 mprotect=226 madvise=233 wait4=260
    prlimit64=261 getrandom=278 copy_file_range=285 statx=291 rseq=293 clone3=435 close_range=436 openat2=437
    faccessat2=439
""")
_TABLES = {"x86_64": (0xC000003E, _X86), "aarch64": (0xC00000B7, _ARM)}
_ARGUMENT = 16
"""The offset of a call's first argument; each argument has eight bytes, the lower half first."""
_FAILING = {"ioctl": errno.ENOTTY, "clone3": errno.ENOSYS, "openat2": errno.ENOSYS, "copy_file_range": errno.ENOSYS}
"""The calls that programs try first, with the error after which they use another call."""


def forbid_system_calls() -> None:
    """Installs the filter for this process and all that it starts, for good. Raises OSError if the kernel cannot."""
    if MACHINE not in _TABLES:
        raise OSError(0, f"seccomp: not known on {MACHINE}")
    arch, table = _TABLES[MACHINE]
    # Other architectures (x32, 32 bit) use other numbers for the same calls, so they are killed.
    made = [_load(_ARCH), _step(_JUMP_EQUAL, arch, 1, 0), _leave(_KILL), _load(_NUMBER)]
    for name, number in table.items():
        body = _body(name)
        made += [_step(_JUMP_EQUAL, number, 0, len(body)), *body]
    program = b"".join([*made, _leave(_ERRNO | errno.EPERM)])
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    invoke("prctl", PR_SET_SECCOMP, _FILTER_MODE, ctypes.create_string_buffer(header, len(header)), 0, 0)


def _body(name: str) -> list[bytes]:
    """Returns the instructions for a matching call number; they always return from the filter."""
    if name in _FAILING:
        return [_leave(_ERRNO | _FAILING[name])]
    # Threads and children are fine; a new user namespace would give back capabilities.
    if name == "clone":
        return _unless_bits(0, _NEW_NAMESPACES, errno.EPERM)
    if name in {"open", "openat"}:
        return _unless_bits(1 if name == "open" else 2, _WRITING, errno.EROFS)
    if name == "prlimit64":  # asking, not setting: the third argument is no address
        upper = [_load(_ARGUMENT + 20), _step(_JUMP_EQUAL, 0, 1, 0), _leave(_ERRNO | errno.EPERM)]
        return [
            *upper,
            _load(_ARGUMENT + 16),
            _step(_JUMP_EQUAL, 0, 1, 0),
            _leave(_ERRNO | errno.EPERM),
            _leave(_ALLOW),
        ]
    return [_leave(_ALLOW)]


def _unless_bits(argument: int, bits: int, number: int) -> list[bytes]:
    loaded = _load(_ARGUMENT + 8 * argument)
    return [loaded, _step(_JUMP_ANY_BIT, bits, 0, 1), _leave(_ERRNO | number), _leave(_ALLOW)]


def _load(offset: int) -> bytes:
    return _step(_LOAD, offset)


def _leave(action: int) -> bytes:
    return _step(_RETURN, action)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
