"""What a rank takes in: the rows of its own nodes, and a few facts about everybody's."""
