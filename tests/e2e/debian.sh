#!/bin/sh
# Puts a package of Debian and whatever it needs into a folder, without installing it, and prints the folder's root.
# Usage: debian.sh FOLDER PACKAGE. Needs apt-get and dpkg.
set -eu
folder=$1
if [ ! -e "$folder/ready" ]; then
    rm -rf "$folder"
    mkdir -p "$folder/debs/partial"
    apt-get install -y --no-install-recommends --download-only -o Dir::Cache::archives="$folder/debs" "$2" >/dev/null 2>&1
    for deb in "$folder"/debs/*.deb; do dpkg -x "$deb" "$folder/root"; done
    rm -rf "$folder/debs"
    # Debian's alternatives are made when a package is installed.
    for name in "$folder"/root/usr/bin/*.openmpi; do [ -e "$name" ] && ln -sf "${name##*/}" "${name%.openmpi}"; done
    touch "$folder/ready"
fi
echo "$folder/root"
