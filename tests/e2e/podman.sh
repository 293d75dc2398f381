#!/bin/sh
# Puts a real podman into a folder of its own, without installing it, and prints the variables it needs.
# Other tests must not find it: most of them are about machines without a container engine.
# Usage: podman.sh FOLDER. Needs root, apt-get and dpkg.
set -eu
folder=$1
if [ ! -e "$folder/ready" ]; then
    rm -rf "$folder"
    mkdir -p "$folder/debs" "$folder/home/.config/containers"
    cd "$folder/debs"
    apt-get download podman runc conmon catatonit libsubid4 libgpgme11 libassuan0 \
        golang-github-containers-common golang-github-containers-image busybox-static >/dev/null 2>&1
    for deb in ./*.deb; do dpkg -x "$deb" "$folder/root"; done
    rm -rf "$folder/debs"
    cat >"$folder/containers.conf" <<CONF
[engine]
runtime = "runc"
conmon_path = ["$folder/root/usr/bin/conmon"]
cgroup_manager = "cgroupfs"
events_logger = "file"
[engine.runtimes]
runc = ["$folder/root/usr/sbin/runc"]
[containers]
init_path = "$folder/root/usr/bin/catatonit"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
CONF
    printf '[storage]\ndriver = "vfs"\nrunroot = "%s/run"\ngraphroot = "%s/graph"\n' "$folder" "$folder" >"$folder/storage.conf"
    echo '{"default":[{"type":"insecureAcceptAnything"}]}' >"$folder/home/.config/containers/policy.json"
    # An image of one static program, made here: nothing is pulled.
    mkdir -p "$folder/image/bin" "$folder/image/etc" "$folder/image/tmp"
    cp "$folder/root/bin/busybox" "$folder/image/bin/"
    for name in sh cat echo id ls pwd sleep; do ln -sf busybox "$folder/image/bin/$name"; done
    echo "from the image" >"$folder/image/etc/marker"
    tar -C "$folder/image" -cf "$folder/image.tar" .
    touch "$folder/ready"
fi
echo "PATH=$folder/root/usr/bin:$PATH"
echo "LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu"
echo "CONTAINERS_CONF=$folder/containers.conf"
echo "CONTAINERS_STORAGE_CONF=$folder/storage.conf"
echo "HOME=$folder/home"
