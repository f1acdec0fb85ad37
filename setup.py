"""The compiled part of the package; everything else about it is in pyproject.toml."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent / "buildtools"))
import kernels
import urls


class Modules(build_py):
    """Copies the package as it is now: a module that was deleted is in no wheel."""

    def run(self) -> None:
        """Remove what an earlier build left, but for what is expensive."""
        for old in Path(self.build_lib).rglob("*"):
            if old.is_file() and old.suffix not in {".so", ".pyd"}:
                old.unlink()
        super().run()

    def find_package_modules(
        self, package: str, package_dir: str | os.PathLike[str]
    ) -> list[tuple[str, str, str]]:
        """Leave out the source of what is compiled: nothing imports it."""
        found = super().find_package_modules(package, package_dir)
        compiled = {path.stem for path in kernels.compiled_modules()}
        return [one for one in found if package != kernels.PACKAGE or one[1] not in compiled]


class Compiled(build_ext):
    """Compiles with the compiler that works here."""

    def initialize_options(self) -> None:
        """Keep the objects where the C sources are."""
        super().initialize_options()
        self.build_temp = f"{kernels.BUILD}/objects"

    def build_extensions(self) -> None:
        """Compile on every core; what has no source any more goes."""
        command = kernels.compiler()
        if command is not None:
            self.compiler.set_executables(
                compiler=command,
                compiler_so=[*command, "-fPIC"],
                linker_so=[*command, "-shared", *([] if kernels.VARIANT else ["-s"])],
            )
        self.parallel = os.cpu_count()
        super().build_extensions()
        made = {Path(self.get_ext_fullpath(e.name)).resolve() for e in self.extensions}
        for folder in {path.parent for path in made}:
            for old in folder.glob("*.so"):
                if old.resolve() not in made:
                    old.unlink()


class Wheel(bdist_wheel):
    """Tags the wheel for every Python from the oldest on."""

    def finalize_options(self) -> None:
        """Say so before the tag is made."""
        self.py_limited_api = "cp{}{}".format(*kernels.OLDEST)
        super().finalize_options()


setup(
    project_urls=urls.project_urls(Path(__file__).resolve().parent),
    ext_modules=kernels.extensions(),
    cmdclass={"build_py": Modules, "build_ext": Compiled, "bdist_wheel": Wheel},
)
