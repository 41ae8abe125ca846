#!/usr/bin/env python3
"""Compiles cuda/kernels to PTX with NVRTC and checks what ptxas makes of it. No GPU and no CUDA installation is needed.

    python3 -m venv venv
    venv/bin/pip install 'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*' \
        'nvidia-cuda-nvcc==13.0.*'
    venv/bin/python cuda/ptx/build.py            # writes sm_75.ptx, sm_80.ptx and source.sha256
    venv/bin/python cuda/ptx/build.py --check    # compiles again and compares; fails when a file is stale

The driver compiles sm_80.ptx for every later GPU as well: the PTX of sm_90 differs in its `.target` line alone.

Bounds: no kernel spills a register, and registers and shared memory allow at least half of a multiprocessor's threads; of
`many`, whose threads hold 32 sums each, a third. It is slower with half of them, which have to spill.
"""
import ctypes
import hashlib
import pathlib
import re
import subprocess
import sys
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = HERE.parent / "kernels"
# By architecture, that of the PTX which it runs, and the threads, registers and bytes of shared memory of a
# multiprocessor, with the bytes that each block reserves there.
MACHINES = {
    75: (75, 1024, 65536, 64 << 10, 0),
    80: (80, 2048, 65536, 164 << 10, 1 << 10),
    90: (80, 2048, 65536, 228 << 10, 1 << 10),
}
BLOCK = 256


def toolkit():
    for folder in map(pathlib.Path, {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}):
        root = folder / "nvidia" / "cu13"
        if root.is_dir():
            return root
    sys.exit("build.py: the wheels of the first lines of this file are not installed beside this Python")


def source_hash():
    digest = hashlib.sha256()
    for path in sorted(KERNELS.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def compile_ptx(root, architecture):
    # Loaded first, since NVRTC asks for it by its bare name.
    ctypes.CDLL(str(next((root / "lib").glob("libnvrtc-builtins.so.*"))), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(root / "lib" / "libnvrtc.so.13"))
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()
    options = [
        f"--gpu-architecture=compute_{architecture}".encode(),
        b"--std=c++17",
        b"--restrict",
        f"--include-path={KERNELS}".encode(),
        f"--include-path={root / 'include'}".encode(),
    ]
    source = (KERNELS / "kernels.cu").read_bytes()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    if code != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f"build.py: sm_{architecture}: {nvrtc.nvrtcGetErrorString(code).decode()}\n{log.value.decode()}")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()


def check_bounds(root, architecture, path):
    """Prints a line for each kernel; returns what breaks a bound."""
    command = [str(root / "bin" / "ptxas"), "-v", f"-arch=sm_{architecture}", "-o", "/dev/null", str(path)]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    _, threads, registers, shared, reserved = MACHINES[architecture]
    broken = []
    found = re.findall(
        r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers(.*?)\n",
        report, re.S)
    for name, stores, loads, used, rest in found:
        bytes_shared = int((re.search(r"(\d+) bytes smem", rest) or [0, 0])[1])
        by_registers = registers // (-(-int(used) // 8) * 8 * BLOCK)
        by_shared = shared // (bytes_shared + reserved) if bytes_shared else 1 << 30
        share = min(by_registers, by_shared, threads // BLOCK) * BLOCK / threads
        print(f"sm_{architecture} {name}: {used} registers, {bytes_shared} bytes shared, occupancy {share:.0%}")
        if int(stores) or int(loads):
            broken.append(f"sm_{architecture} {name} spills")
        least = 1 / 3 if name.startswith("many") else 1 / 2
        if share < least:
            broken.append(f"sm_{architecture} {name}: occupancy {share:.0%} is below {least:.0%}")
    expected = len(re.findall(r"\.visible \.entry", path.read_text()))
    if len(found) != expected:
        broken.append(f"sm_{architecture}: ptxas reports {len(found)} of {expected} kernels")
    return broken


def main():
    check = sys.argv[1:] == ["--check"]
    root, broken = toolkit(), []
    for architecture in sorted({ptx for ptx, *_ in MACHINES.values()}):
        ptx = compile_ptx(root, architecture)
        path = HERE / f"sm_{architecture}.ptx"
        if not check:
            path.write_text(ptx)
        elif not path.exists() or path.read_text() != ptx:
            broken.append(f"{path.name} is not what the sources compile to: run build.py")
            continue
        for machine in (machine for machine, (ptx, *_) in MACHINES.items() if ptx == architecture):
            broken += check_bounds(root, machine, path)
    stamp = HERE / "source.sha256"
    if not check:
        stamp.write_text(source_hash() + "\n")
    elif stamp.read_text().strip() != source_hash():
        broken.append("source.sha256 is stale: run build.py")
    sys.exit("\n".join(broken) if broken else 0)


main()
