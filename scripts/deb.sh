#!/usr/bin/env bash
# Makes a Debian package of a built program, by dpkg-deb alone.
# usage: deb.sh [--development] BINARY FOLDER
# Prints the package's path. --development accepts libraries that no package has (a program that is linked against the
# toolchain's own), and compresses little: for tests.
set -euo pipefail
cd "$(dirname "$0")/.."

development=no
if [ "${1:-}" = --development ]; then
    development=yes
    shift
fi
if [ $# -ne 2 ]; then
    echo "usage: deb.sh [--development] BINARY FOLDER" >&2
    exit 2
fi
binary=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")

version=$("$binary" --version | sed -n '1s/.*[^0-9.]\([0-9][0-9A-Za-z.+~-]*\).*/\1/p')
if [ -z "$version" ]; then
    echo "deb: $binary does not say its version" >&2
    exit 1
fi
architecture=$(dpkg --print-architecture)
maintainer=${DEB_MAINTAINER:-Portcullis maintainers <maintainers@portcullis.example>}
# The same source gives the same package, byte by byte.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
doc=$root/usr/share/doc/portcullis

# Puts the values of this build into a text.
fill() {
    sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@MAINTAINER@/$maintainer/" \
        -e "s/@DATE@/$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)/" -e "s/@SIZE@/${size:-}/" \
        -e "s/@LIBRARIES@/${libraries:-}/" "$1"
}

install -D -m 0755 "$binary" "$root/usr/bin/portcullis"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/portcullis"
install -D -m 0644 -t "$root/lib/systemd/system" deploy/systemd/portcullis.service deploy/systemd/portcullis.socket
install -D -m 0644 deploy/systemd/portcullis.sysusers "$root/usr/lib/sysusers.d/portcullis.conf"
install -D -m 0644 deploy/systemd/portcullis.tmpfiles "$root/usr/lib/tmpfiles.d/portcullis.conf"
install -D -m 0644 proxy.conf.example "$root/etc/portcullis/proxy.conf"
install -D -m 0644 -t "$doc" README.md deploy/debian/copyright
install -D -m 0644 -t "$doc/examples" proxy.conf.example deploy/systemd/notify-reload.conf
install -D -m 0644 deploy/debian/lintian-overrides "$root/usr/share/lintian/overrides/portcullis"
install -d "$root/usr/share/man/man1"
fill deploy/debian/portcullis.1 | gzip -9n >"$root/usr/share/man/man1/portcullis.1.gz"
gzip -9n >"$doc/changelog.gz" <<CHANGELOG
portcullis ($version) stable; urgency=medium

  * Built from the source of $(date -u -d "@$SOURCE_DATE_EPOCH" +%F); its history says what changed.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
CHANGELOG

# What the program is linked against, as packages. dpkg-shlibdeps wants a source package around it.
mkdir -p "$work/source/debian"
printf 'Source: portcullis\n\nPackage: portcullis\nArchitecture: any\n' >"$work/source/debian/control"
missing=()
if [ $development = yes ]; then missing=(--ignore-missing-info); fi
libraries=$(cd "$work/source" && dpkg-shlibdeps "${missing[@]}" -O "$root/usr/bin/portcullis" 2>"$work/shlibdeps" |
    sed -n 's/^shlibs:Depends=//p')
if [ -z "$libraries" ]; then
    cat "$work/shlibdeps" >&2
    exit 1
fi

mkdir "$root/DEBIAN"
size=$(du -k -s --apparent-size "$root" | cut -f 1)
fill deploy/debian/control.in >"$root/DEBIAN/control"
echo /etc/portcullis/proxy.conf >"$root/DEBIAN/conffiles"
install -m 0755 -t "$root/DEBIAN" deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm
(cd "$root" && find . -type f ! -path './DEBIAN/*' ! -path './etc/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) \
    >"$root/DEBIAN/md5sums"

level=9
if [ $development = yes ]; then level=0; fi
package=$folder/portcullis_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz -z$level --build "$root" "$package" >&2
echo "$package"
