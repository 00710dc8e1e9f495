#!/usr/bin/env bash
# Builds the installer for the Mac and reads it back with other programs: libarchive, and lsbom if it is there.
#
#   tests/packages/installer.sh FOLDER    FOLDER: with the two programs, of any system
#
# Exits with 77 if bsdtar is missing here. It does not install: only a Mac can.
set -euo pipefail
programs=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v bsdtar >/dev/null || { echo 'skipped: installer: needs bsdtar of libarchive to read the package'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $1" >&2; exit 1; }

.ci/release pages "$programs"
for number in 1 2; do DIST=$work/$number .ci/release installer "$programs"; done
# pkgbuild notes the time of its run.
command -v pkgbuild >/dev/null || cmp "$work"/[12]/longhaul.pkg || fail 'two packages of the same programs differ'
mkdir "$work/package" "$work/root"
bsdtar -tf "$work/1/longhaul.pkg" | sort >"$work/parts"
# Without scripts: the service itself notices that its programs were replaced, and starts again.
diff "$work/parts" <(printf '%s\n' Bom PackageInfo Payload) || fail 'the parts of the package'
bsdtar -xf "$work/1/longhaul.pkg" -C "$work/package"
cat "$work/package/PackageInfo"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
grep -q ' identifier="org.longhaul" ' "$work/package/PackageInfo" || fail 'the identifier'
grep -q " version=\"$version\" " "$work/package/PackageInfo" || fail 'the version'

# Modes, owners and names. `/` and the folders that already exist keep the modes that macOS gave them.
bsdtar -tvf "$work/package/Payload" | awk '{print $1, $3, $4, $NF}' | sort >"$work/list"
grep -v '/man1/longhaul-' "$work/list"
{
  share=./usr/local/share
  printf 'drwxr-xr-x 0 0 %s\n' . ./usr ./usr/local ./usr/local/bin $share $share/{man,man/man1,doc,doc/longhaul,zsh,zsh/site-functions} \
    $share/{bash-completion,bash-completion/completions,fish,fish/vendor_completions.d}
  printf -- '-rwxr-xr-x 0 0 %s\n' ./usr/local/bin/{longhaul,longhauld}
  printf -- '-rw-r--r-- 0 0 %s\n' $share/doc/longhaul/{README.md,CHANGELOG.md,LICENSE-MIT,LICENSE-APACHE} $share/zsh/site-functions/_longhaul \
    $share/bash-completion/completions/longhaul $share/fish/vendor_completions.d/longhaul.fish
  (cd target/packages/man && printf -- "-rw-r--r-- 0 0 $share/man/man1/%s\n" *.1)
} | sort >"$work/expected"
diff "$work/expected" "$work/list" || fail 'files, modes or owners'
bsdtar -xf "$work/package/Payload" -C "$work/root"
for program in longhaul longhauld; do cmp "$programs/$program" "$work/root/usr/local/bin/$program" || fail "$program differs"; done
cmp target/packages/longhaul.zsh "$work/root/usr/local/share/zsh/site-functions/_longhaul" || fail 'the completions differ'
grep -q " numberOfFiles=\"$(wc -l <"$work/list")\"" "$work/package/PackageInfo" || fail 'the number of files'

if command -v lsbom >/dev/null; then
  lsbom -p fmugsc "$work/package/Bom" | sed 's/[[:space:]]*$//' | sort >"$work/listed"
  (cd "$work/root" && find . -type d -printf '%p\t4%04m\t0\t0\n' && find . -type f | while read -r file; do
    printf '%s\t%s\t0\t0\t%s\t%s\n' "$file" "100$(stat -c %a "$file")" "$(stat -c %s "$file")" "$(cksum "$file" | cut -d' ' -f1)"
  done) | sort >"$work/wanted"
  diff "$work/wanted" "$work/listed" || fail 'the list in Bom'
  echo 'the list in Bom agrees with the files, their sizes and their checksums'
else
  echo 'skipped: installer: Bom is not read back, because lsbom is not here'
fi
mkdir -p dist
cp "$work/1/longhaul.pkg" dist/
echo 'the package has exactly the expected files'
