#!/bin/bash
# case_108: the launcher started four tasks and MPI sees one. Never VERIFIED, one line that names both numbers, no run folder.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
slurm=(SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0)

for command in verify bench; do
  # shellcheck disable=SC2086
  {
    ends_with 2 env "${slurm[@]}" "$ddp" $command $small
    says "started 4 ranks, but MPI sees 1"
    ends_with 2 env "${slurm[@]}" SLURM_JOB_ID=7 SLURM_STEP_ID=0 "$ddp" $command $small
    says "started 4 ranks, but MPI sees 1"
  }
done
[[ ! -e runs ]] || failed "a run folder was left"

# A batch script for four tasks that starts one program without srun: no false alarm.
# shellcheck disable=SC2086
ends_with 0 env SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_STEP_ID=4294967291 SLURM_STEP_NUM_TASKS=1 "$serial" verify $small --vocab 16 --steps 2
grep -q "^SHARDMARK serial VERIFIED" out || failed "not VERIFIED"
# Threads under a launcher of several processes would be several jobs.
# shellcheck disable=SC2086
ends_with 2 env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$ddp" verify $small --ranks-as-threads 2
says "2 processes"
echo "no world of one rank passed"
