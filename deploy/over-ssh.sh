#!/bin/sh
# over-ssh.sh HOST...   the i-th host gets the i-th key, which must lie there as /etc/loadstone/agent.creds
# A client of ssh that dies leaves its program running or not, as it comes: systemd keeps the agent, and
# the dead-man switch ends its load.
for host in "$@"; do
  ssh -o ControlMaster=no "$host" systemd-run --collect --property=LimitNOFILE=1048576 \
    --property=RuntimeMaxSec=7200 loadstone fleet agent --manager tls://hub.example:4222 \
    --ca /etc/loadstone/ca.pem --creds /etc/loadstone/agent.creds </dev/null &
done
wait
