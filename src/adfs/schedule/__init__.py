"""Who computes or communicates when: events, how they are drawn, and how long they take."""
