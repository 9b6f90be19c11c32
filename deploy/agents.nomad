job "loadstone-agents" {
  type = "batch"

  group "agents" {
    count = 20

    constraint {
      distinct_hosts = true
    }

    restart {
      attempts = 0
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "agent" {
      driver       = "exec"
      kill_timeout = "15s"

      config {
        command = "loadstone"
        args = [
          "fleet", "agent", "--manager", "tls://hub.example:4222",
          "--ca", "/etc/loadstone/ca.pem",
          "--creds", "/etc/loadstone/agent-${NOMAD_ALLOC_INDEX}.creds",
        ]
      }

      resources {
        cores  = 2
        memory = 1024
      }
    }
  }
}
