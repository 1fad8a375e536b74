"""Puts libredecode_record.so into the package: REDECODE_RECORD_LIBRARY names one that is built,
otherwise the project around this folder builds it with CMake."""

import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = pathlib.Path(__file__).resolve().parent
NAME = "libredecode_record.so"


def built_library() -> pathlib.Path:
    named = os.environ.get("REDECODE_RECORD_LIBRARY")
    if named:
        path = pathlib.Path(named)
        if not path.is_file():
            sys.exit(f"REDECODE_RECORD_LIBRARY: there is no file {path}")
        return path
    root = HERE.parent
    if not (root / "recorder" / "abi" / "redecode_record.h").is_file():
        sys.exit("build from a checkout of redecode, or set REDECODE_RECORD_LIBRARY to the library")
    if shutil.which("cmake") is None:
        sys.exit("cmake is missing; `./dev build` in the checkout installs what the build needs")
    build = root / "build" / "python"
    configure = ["cmake", "-S", str(root), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release"]
    configure += ["-DREDECODE_TESTS=OFF", "-DREDECODE_BENCH=OFF", "-DREDECODE_CUDA=OFF"]
    if shutil.which("ninja"):
        configure += ["-G", "Ninja"]
    subprocess.run(configure, check=True)
    subprocess.run(
        ["cmake", "--build", str(build), "--target", "redecode_record", "-j", str(os.cpu_count())],
        check=True,
    )
    return next(build.rglob(NAME))


class BuildWithLibrary(build_py):
    def run(self) -> None:
        super().run()
        target = pathlib.Path(self.build_lib) / "redecode_record" / NAME
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built_library(), target)


class BinaryDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(cmdclass={"build_py": BuildWithLibrary}, distclass=BinaryDistribution)
