#!/bin/sh
# Sees to it that the GPU tests have an adapter: a real one, or Mesa's software Vulkan.
set -eu
[ "${GRADIRON_TEST_NO_GPU:-}" = 1 ] && exit 0
[ "$(uname)" = Darwin ] && exit 0 # Metal is always there.

has_driver() {
    for folder in /usr/share/vulkan/icd.d /usr/local/share/vulkan/icd.d /etc/vulkan/icd.d; do
        ls "$folder"/*.json >/dev/null 2>&1 && return 0
    done
    [ -n "${VK_ICD_FILENAMES:-}${VK_DRIVER_FILES:-}" ]
}
has_loader() {
    ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1' || ls /usr/lib*/libvulkan.so.1 >/dev/null 2>&1
}
has_driver && has_loader && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q </dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends mesa-vulkan-drivers libvulkan1 </dev/null
else
    echo "The GPU tests need a Vulkan driver. On Debian and Ubuntu: sudo apt install mesa-vulkan-drivers" >&2
    echo "(GRADIRON_TEST_NO_GPU=1 leaves them out.)" >&2
    exit 1
fi
