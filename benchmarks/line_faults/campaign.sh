#!/bin/bash
# Records each named fault once:  campaign.sh OUT SECONDS NAME...     (a GPU, root; ultralytics and gpu-report installed)
# LANE=1 records on what another one has prepared (data, slow disk, server), at the same time on another GPU.
# OUT gets NAME/ (the run folder) and NAME.json (what was done), and truth.csv, an independent recording of all of it.
set -u
out=$1 seconds=$2; shift 2
here=$(cd "$(dirname "$0")" && pwd)
data=${DATA:-/tmp/data} truth=${TRUTH_RECORDER:-}
export YOLO_OFFLINE=true YOLO_CONFIG_DIR=/tmp/yolo-config YOLO_AUTOINSTALL=false MPLBACKEND=agg SLOW_DISK=/tmp/slow
mkdir -p "$out"
if [ ! -e "$data/data.yaml" ]; then
    python3 "$MAKE_DATA" "$data" "${IMAGES:-1600}" 160 640
    python3 "$MAKE_DATA" "$data-large" "${LARGE:-60}" 16 "${LARGE_SIZE:-3500}"
    for copy in $(seq "${COPIES:-25}"); do  # YOLO keeps what fits into its buffer: many images, and few to make
        for image in "$data-large"/images/train/0*.jpg; do
            name=$(basename "$image" .jpg)
            ln -s "$image" "$data-large/images/train/c$copy-$name.jpg"
            ln -s "$data-large/labels/train/$name.txt" "$data-large/labels/train/c$copy-$name.txt"
        done
    done
    mkdir -p /tmp/slow-backing
    mkdir -p /tmp/slow-backing/{images,labels}/{train,val}
    for kind in images labels; do
        find "$data/$kind/train" -type f | sort | head -960 | xargs cp -t /tmp/slow-backing/$kind/train
        find "$data/$kind/val" -type f | sort | head -32 | xargs cp -t /tmp/slow-backing/$kind/val
    done
    sed "s#^path:.*#path: $data-large#" "$data/data.yaml" > "$data/large.yaml"
    sed "s#^path:.*#path: /tmp/slow#" "$data/data.yaml" > "$data/slow.yaml"
    python3 -c 'import json, random; json.dump([[random.random() for _ in range(300)] for _ in range(1000)], open("/tmp/annotations.json", "w"))'
    python3 "$here/slow_disk.py" /tmp/slow-backing /tmp/slow 0 0 & slow=$!
    sleep 1
    DATA_YAML=$data/slow.yaml python3 "$here/scan.py"  # what YOLO remembers of its images, before the disk is slow
    umount -l /tmp/slow; kill $slow
fi
if [ -z "${LANE:-}" ]; then
    setsid python3 "$here/slow_disk.py" /tmp/slow-backing /tmp/slow "${READ_S:-0.03}" 0.06 & slow=$!
    python3 "$here/server.py" & server=$!
fi
[ -n "$truth" ] && { python3 "$truth" 10 "$out/truth.csv" & recorder=$!; }
sleep 1
for name in "$@"; do
    began=$SECONDS
    [ "$name" = launch-blocking ] && export CUDA_LAUNCH_BLOCKING=1 || unset CUDA_LAUNCH_BLOCKING
    [ "$name" = rank-link ] && export NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 || unset NCCL_P2P_DISABLE NCCL_SHM_DISABLE
    [ "$name" = no-caching ] && export PYTORCH_NO_CUDA_MEMORY_CACHING=1 || unset PYTORCH_NO_CUDA_MEMORY_CACHING
    [ "$name" = sigterm ] && export SLURM_JOB_ID=4242 || unset SLURM_JOB_ID
    case $name in rank-*) run=(python3 -m torch.distributed.run --nproc_per_node 2) ;; *) run=(python3) ;; esac
    run+=("$here/train.py" "$name" "$out/$name.json" "$data/data.yaml")
    case $name in
        few-cores) run=(taskset -c 0,1 "${run[@]}") ;;
        pipe-stdout) run=(bash -c "$(printf '%q ' "${run[@]}") | python3 $here/slow_reader.py") ;;
        crash-loop) run=(bash -c "for n in 1 2 3 4 5 6; do $(printf '%q ' "${run[@]}") && break; done") ;;
    esac
    timeout -s INT -k 20 "$seconds" gpu-report record --output "$out/$name" -- "${run[@]}" > "$out/$name.log" 2>&1
    [ -n "${ARCHIVE:-}" ] && tar rf "$ARCHIVE" -C "$out" "$name" "$name.json" "$name.log"
    echo "$name: exit code $?, $((SECONDS - began)) s, $(grep -c epoch_start "$out/$name.json" 2>/dev/null) files"
done
[ -n "$truth" ] && kill "$recorder"
if [ -z "${LANE:-}" ]; then
    kill $server
    umount -l /tmp/slow; kill $slow 2>/dev/null
fi
true
