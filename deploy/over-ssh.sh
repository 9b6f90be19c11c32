#!/bin/sh
# over-ssh.sh HOST...   each host has a key of its own as /etc/loadstone/agent.creds
# With -tt an agent ends when its client of ssh dies; without a terminal it would go on, and the dead-man
# switch would end its load. SSH: the client, with its options. Where hosts have systemd, it may keep the
# agent in place of the client: put "systemd-run --collect --property=LimitNOFILE=1048576" before the command.
for host in "$@"; do
  ${SSH:-ssh} -tt -o ControlMaster=no "$host" exec loadstone fleet agent \
    --manager tls://hub.example:4222 --ca /etc/loadstone/ca.pem --creds /etc/loadstone/agent.creds </dev/null &
done
wait
