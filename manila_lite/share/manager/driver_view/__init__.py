"""What drivers are given: share instances, rules, servers, replicas."""
