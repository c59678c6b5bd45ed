#!/usr/bin/env bash
# Runs binder/ as an image build would: in a clean clone, with an empty home folder and a Python
# environment of its own. Then starts the kernel the way the image does and runs a notebook.
#
# The Rust toolchain of this machine is used, so that no toolchain is downloaded. Not covered:
# installing the packages of apt.txt, and the container itself.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
toolchains=${RUSTUP_HOME:-$HOME/.rustup}
rustup=$(dirname "$(command -v rustup)")

git clone --quiet "$root" "$scratch/repository"
mkdir "$scratch/home"
python3 -m venv "$scratch/python"

in_image() {
    env -i HOME="$scratch/home" RUSTUP_HOME="$toolchains" LANG=C.UTF-8 \
        PATH="$scratch/python/bin:$rustup:/usr/local/bin:/usr/bin:/bin" "$@"
}
cd "$scratch/repository"
in_image pip install --quiet --disable-pip-version-check --requirement binder/requirements.txt
in_image binder/postBuild

in_image binder/start cargo --version | grep -F "1.95.0"
in_image jupyter kernelspec list | grep -F "$scratch/python/share/jupyter/kernels/candle-accelerate"
in_image binder/start python tests/run_notebooks.py --output "$scratch/results" "${@:-notebooks/05-manual-loop.ipynb}"
echo "binder: ok"
