# configuration.sh - functions for scripts in the simulated machine: `wire` sets netem options (delay, loss, rate) of both ends of the
# network; `configuration` prints a service configuration that skips no round because of a backup, heat, low power mode, another link
# or the time budget. Its arguments NAME=VALUE replace the defaults of TARGETS, WORKLOADS, FILES (files in a tree), ROUNDS (rounds a
# day), PROBE and COUNTERS (intervals in seconds).
wire() {   # wire NETEM...
  tc qdisc change dev vec0 root netem limit 20000 "$@"
  nsenter --net=/run/netns/nas tc qdisc change dev s0 root netem limit 20000 "$@"
}
configuration() (
  TARGETS='local smb3 nfs3 nfs4' WORKLOADS='"folder-index", "photo-batch", "incremental-backup", "time-machine"'
  FILES=400 ROUNDS=6 PROBE=600 COUNTERS=600
  local setting; for setting in "$@"; do declare "$setting"; done
  printf 'scale = "quick"\nworkloads = [%s]\n[folder-index]\nfiles = %s\n[limits]\ncap-seconds = 120\n' "$WORKLOADS" "$FILES"
  printf '[schedule]\nrounds-per-day = %s\nmax-time-percent = 100.0\nslices = 2\n' "$ROUNDS"
  for rule in during-backup when-hot in-low-power-mode on-other-link; do printf 'skip-%s = false\n' $rule; done
  printf '[sampling]\nprobe-when = "always"\nprobe-interval-seconds = %s\ncounter-interval-seconds = %s\n' "$PROBE" "$COUNTERS"
  for target in $TARGETS; do
    printf '[targets.%s]\npath = "/m/%s/data-%s"\n' $target $target $target
    [ $target != local ] || echo 'role = "baseline"'
  done
)
