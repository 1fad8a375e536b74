"""Puts libredecode_record.so into the wheel.

REDECODE_RECORD_LIBRARY names one that is built; otherwise the checkout around this folder builds
its CMake target redecode_record, and nothing else of it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

NAME = "libredecode_record.so"
ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "g++ cmake ninja-build capnproto libcapnp-dev libzstd-dev libxxhash-dev libssl-dev "
    "libspdlog-dev libcli11-dev"
)


def stop(what: str) -> None:
    sys.exit(f"redecode-record: {what}")


def run(*command: str) -> None:
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        stop(
            f"{error}\nThe build of {NAME} failed; the lines above say where. On Debian 12 and "
            f"Ubuntu 24.04 it needs\n  apt install {PACKAGES}\n"
            f"or set REDECODE_RECORD_LIBRARY to a {NAME} that is built already."
        )


def library() -> Path:
    named = os.environ.get("REDECODE_RECORD_LIBRARY")
    if named:
        if not Path(named).is_file():
            stop(f"REDECODE_RECORD_LIBRARY: there is no file {named}")
        return Path(named)
    if not (ROOT / "recorder" / "abi" / "redecode_record.h").is_file():
        stop("build from a checkout of redecode, or set REDECODE_RECORD_LIBRARY to the library")
    for tool in ("cmake", "capnp"):
        if shutil.which(tool) is None:
            stop(f"{tool} is missing: apt install {PACKAGES}")
    build = ROOT / "build" / "python"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    switches = ["-DREDECODE_TESTS=OFF", "-DREDECODE_BENCH=OFF", "-DREDECODE_CUDA=OFF"]
    run(
        "cmake",
        "-S",
        str(ROOT),
        "-B",
        str(build),
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O2",
        *generator,
        *switches,
    )
    run(
        "cmake",
        "--build",
        str(build),
        "--target",
        "redecode_record",
        "--parallel",
        os.environ.get("JOBS", str(os.cpu_count() or 1)),
    )
    return build / "recorder" / NAME


class BuildWithLibrary(build_py):
    def run(self) -> None:
        super().run()
        target = Path(self.build_lib) / "redecode_record" / NAME
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library(), target)


class AnyPythonWheel(bdist_wheel):
    """ctypes: one wheel for every Python 3, but for this platform only."""

    def get_tag(self) -> tuple:
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": AnyPythonWheel}, distclass=WithLibrary)
