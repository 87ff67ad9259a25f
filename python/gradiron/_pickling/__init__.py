"""How tensors become pickles and come back. `serialization` puts such pickles into files, `multiprocessing` into pipes."""
