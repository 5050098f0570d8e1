"""Data: files, known data sets, generated samples, shards; all rows or only those of a rank."""
