"""Compiles the C core and the extension into heddle._core.

In the repository the core is beside this directory; a source distribution has a copy of it in
core/.
"""

import os
import re
import shutil
import subprocess
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLE = "core"  # the core's folder in a source distribution
REQUIRED = ["sqlite3", "libzstd", "libxxhash", "yyjson", "libcrypto"]


def core_directory():
    above = os.path.join("..", "include", "heddle.h")
    return ".." if os.path.exists(os.path.join(HERE, above)) else BUNDLE


def pkg_config(*arguments):
    tool = os.environ.get("PKG_CONFIG", "pkg-config")
    return subprocess.run([tool, *arguments], capture_output=True, text=True)


def library_flags(names):
    missing = [name for name in names if pkg_config("--exists", name).returncode]
    if missing:
        raise SystemExit(
            f"heddle needs the development files of {', '.join(missing)} "
            "(Debian, Ubuntu: scripts/install-deps in the repository installs them)"
        )
    cflags = pkg_config("--cflags", *names).stdout.split()
    libs = pkg_config("--libs", *names).stdout.split()
    return cflags, libs


def version(core):
    with open(os.path.join(HERE, core, "include", "heddle.h")) as header:
        return re.search(r'HEDDLE_VERSION "(.+)"', header.read()).group(1)


def is_postgres(path):
    return os.path.basename(os.path.dirname(path)) == "postgres"


class Build(build_ext):
    """Runs pkg-config only for an actual build."""

    def build_extension(self, ext):
        names = list(REQUIRED)
        if pkg_config("--exists", "libpq").returncode == 0:
            names.append("libpq")
            ext.define_macros.append(("HD_WITH_POSTGRESQL", None))
        else:
            self.announce("libpq is missing: building without PostgreSQL", 3)
            ext.sources = [path for path in ext.sources if not is_postgres(path)]
        cflags, libs = library_flags(names)
        ext.extra_compile_args += cflags
        ext.extra_link_args += libs
        self.parallel = self.parallel or min(4, os.cpu_count() or 1)
        super().build_extension(ext)


class SourceDistribution(sdist):
    """Includes the core."""

    def run(self):
        core = core_directory()
        if core == BUNDLE:
            super().run()
            return
        bundle = os.path.join(HERE, BUNDLE)
        shutil.rmtree(bundle, ignore_errors=True)
        try:
            for folder in ("include", "src/base", "src/store"):
                shutil.copytree(
                    os.path.join(HERE, core, folder),
                    os.path.join(bundle, folder),
                    ignore=shutil.ignore_patterns("meson.build"),
                )
            super().run()
        finally:
            shutil.rmtree(bundle, ignore_errors=True)


os.chdir(HERE)
CORE = core_directory()

setup(
    version=version(CORE),
    cmdclass={"build_ext": Build, "sdist": SourceDistribution},
    ext_modules=[
        Extension(
            "heddle._core",
            sources=sorted(
                glob("src/*.c") + glob(f"{CORE}/src/base/*.c") + glob(f"{CORE}/src/store/**/*.c", recursive=True)
            ),
            depends=sorted(
                glob("src/*.h")
                + glob(f"{CORE}/include/*.h")
                + glob(f"{CORE}/src/base/*.h")
                + glob(f"{CORE}/src/store/**/*.h", recursive=True)
            ),
            include_dirs=[f"{CORE}/include", f"{CORE}/src", "src"],
            define_macros=[("_GNU_SOURCE", None)],
            extra_compile_args=[
                "-O2",
                "-std=c11",
                "-include",
                "base/banned.h",
                "-fvisibility=hidden",
            ],
            extra_link_args=["-pthread"],
        )
    ],
)
