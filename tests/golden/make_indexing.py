"""Writes indexing.json: what PyTorch reads and writes for a list of keys. Run under PyTorch."""

import os
import pathlib
import sys

import golden_file

HERE = pathlib.Path(__file__).parent
os.environ["GRADIRON_TEST_LIB"] = "torch"
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "operators")]
READ = """
x[0]
x[-1, 2]
x[0, 1, 2]
x[...]
x[:]
x[()]
x[None]
x[..., 0]
x[0, ..., 1]
x[:, -1]
x[1:, :2, 1::2]
x[:, ::2]
x[..., None, 1:3]
x[None, 0, None, 1]
x[0, None, ..., None]
x[:, 5:]
x[i]
x[i, j]
x[i, j, j]
x[:, j]
x[:, :, j]
x[i, :, j]
x[:, i, j]
x[0, j]
x[0, :, j]
x[i, 0]
x[i, None, j]
x[None, i]
x[..., j]
x[i, ..., j]
x[i[:, None], j]
x[ij]
x[ij, ij]
x[:, ij]
x[ij, one]
x[one, :, j]
x[z]
x[z, z]
x[z, :, j]
x[:, z, j]
x[m]
x[m, 1]
x[m, :, 1]
x[:, k]
x[:, k, 1:]
x[mm]
x[mm, 2]
x[b]
x[m, one]
x[0, k]
x[i, k[:3].nonzero()[:, 0].expand(1, 2).sum(1)]
x[yes]
x[no]
x[True]
x[None, m]
x[ee]
x[:, ee]
x[[0, 1, 1]]
x[[0, 1], [2, 0]]
x[[True, False]]
x[1:, i[:1] * 0 + 2]
x[:, 1:][:, j[2:]]
x.transpose(0, 2)[j]
x.transpose(0, 2)[:, i, z]
v[v > 2]
v[j]
v[:, None][j]
s[...]
s[None]
s[()]
s[yes]
s[no]
e[:, 0]
e[ee]
e[:, j]
x[i.int()]
x[m.byte() == 1]
"""
WRITE = """
x[0] = 50.5
x[0, 1] = 60.5
x[..., 1] = s * 10.5
x[:, 1:, ::2] = 70.5
x[1] = w + 100
x[:, 0] = w[0] + 100
x[...] = 80.5
x[None, 0, 2] = w[:1] + 100
x[i[:2]] = 90.5
x[i[:2], j[:2]] = 91.5
x[:, j] = 92.5
x[:, :, j] = w[:, :3] + 100
x[i[:2], :, j[:2]] = 93.5
x[0, j] = w + 100
x[ij[0]] = w + 100
x[m] = 94.5
x[m] = w[None] + 100
x[:, k] = 95.5
x[mm] = w + 100
x[b] = 96.5
x[mm, 2] = w[:, 0] + 100
x[m, 1] = w[:1] + 100
x[b] = s + 100
x[z] = 97.5
x[z, :, 1] = w[:, 0] + 100
x[ee] = 98.5
x[no] = 99.5
x[yes] = 99.5
x[5:] = 1.5
x[:, None, 0] = w[0] + 100
x[0, 0, 0] = True
x[0] = s + 100
x.transpose(0, 2)[1] = 61.5
x.transpose(0, 2)[j[:2]] = 62.5
x[1, 1:][0] = 63.5
x[0] += 100
x[i[:2]] *= 3
x[m] -= x[m] * 2
x[:, j] += w[:, :1] * 10
x[0], x[1] = x[1].clone(), x[0].clone()
x[:] = x.flip(0)
x[0] = x[1]
x[b] = x[b] + 200
x.view(-1)[j] = w[0, :3] + 100
x.diagonal(0, 1, 2)[1] = 64.5
"""

if __name__ == "__main__":
    table = {"read": [], "write": []}
    golden_file.write("indexing.json", table)  # the test, whose tensors these are, reads it
    import test_indexing

    for code in READ.strip().splitlines():
        result = eval(code, test_indexing.space())
        table["read"].append([code, list(result.shape), result.reshape(-1).tolist()])
    for code in WRITE.strip().splitlines():
        names = test_indexing.space()
        exec(code, names)
        table["write"].append([code, names["x"].reshape(-1).tolist()])
    golden_file.write("indexing.json", table)
