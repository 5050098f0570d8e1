"""
A timeline
==========

A schedule is a list of events: local updates, each at one node, and exchanges, each between two
neighbours. The clock says when each node executes them. Here one exchange takes as long as three
local updates.
"""

import adfs

X, y = adfs.generators.two_gaussians(200, 5, seed=0)
problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.5, topology=adfs.Topology.ring(4))
parameters = adfs.Parameters.choose(problem, tau=3.0)
schedule = adfs.Schedule.sample(parameters, 1000, seed=0)
schedule.plot(tau=3.0, n_events=40)

# %%
# This was the default clock, ``nonblocking``: each node sends its message and continues as soon as
# the message of the other node has arrived. With ``rendezvous`` an exchange starts when both nodes
# are ready, and both wait until it is over.

schedule.plot(tau=3.0, clock="rendezvous", n_events=40)
for clock in ("nonblocking", "rendezvous"):
    print(clock, schedule.times(tau=3.0, clock=clock).max())
