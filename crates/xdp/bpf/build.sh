#!/bin/sh
# Compiles the XDP programs beside this script into $1 (default: here). The objects are committed,
# so that a build of the workspace needs no clang; CLANG_VERSION says which major version made them.
# Of the debug information only the types stay, which say what the maps are; so the objects are the
# same wherever they are built.
# Debian packages: clang, llvm, libbpf-dev, linux-libc-dev.
set -eu
cd "$(dirname "$0")"
out=${1:-.}
for source in *.bpf.c; do
	object=${source%.c}.o
	clang -O2 -g -fdebug-compilation-dir=. -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare \
		-I"/usr/include/$(uname -m)-linux-gnu" -c "$source" -o "$out/$object"
	llvm-strip --strip-debug --remove-section=.BTF.ext --remove-section=.rel.BTF.ext "$out/$object"
done
clang --version | sed -n 's/.*version \([0-9]*\).*/\1/p;q' >"$out/CLANG_VERSION"
