#!/usr/bin/env python3
"""Compares every kernel, run by the emulator, with sums in double precision. Needs a C++ compiler for x86-64, no GPU.

    python3 cuda/emulate/check.py              # fibers
    python3 cuda/emulate/check.py address      # threads, under the address and undefined-behaviour sanitizers
    python3 cuda/emulate/check.py thread       # threads, under the thread sanitizer

For each encoding, metric, kind of data and filter: `few` in two passes gives the best k, each vector is loaded once a
pass, and no vector that the filter leaves out is; `many` and `keep` in two stretches leave out none of the best k.
"""
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PADDED = 32
CAPACITY = 4096
NEGATIVE_INFINITY = struct.pack("<f", -math.inf)


def build(mode, folder):
    flags = {
        "": ["-O2"],
        "address": ["-O1", "-g", "-DEMULATE_THREADS", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        "thread": ["-O1", "-g", "-DEMULATE_THREADS", "-fsanitize=thread"],
    }[mode]
    program = pathlib.Path(folder) / "device"
    compiler = os.environ.get("CXX", "c++")
    command = [compiler, "-std=c++17", "-mf16c", "-fno-strict-aliasing", *flags, f"-I{HERE}", "-o", str(program)]
    subprocess.run([*command, str(HERE / "device.cpp"), str(HERE / "emulate.cpp"), "-lpthread"], check=True)
    return program


class Device:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request, answer_len=0):
        self.process.stdin.write(request)
        if not answer_len:
            return b""
        self.process.stdin.flush()
        answer = self.process.stdout.read(answer_len)
        if len(answer) != answer_len:
            sys.exit(f"check.py: the emulator ended with status {self.process.wait()}")
        return answer

    def hold(self, data):
        (address,) = struct.unpack("<Q", self.ask(b"A" + struct.pack("<Q", max(len(data), 1)), 8))
        self.ask(b"W" + struct.pack("<QQ", address, len(data)) + data)
        return address

    def free(self, addresses):
        for address in addresses:
            self.ask(b"F" + struct.pack("<Q", address))

    def read(self, address, form, count):
        length = struct.calcsize("<" + form) * count
        return struct.unpack(f"<{count}{form}", self.ask(b"R" + struct.pack("<QQ", address, length), length))

    def launch(self, name, grid, scan):
        fields = ["rows", "scales", "measures", "filter", "halves", "query_measures", "limits", "margins",
                  "lists", "counts", "overflowed", "answers"]
        numbers = ["base", "first", "count", "stride", "dim", "query_count", "k", "capacity", "room", "blocks"]
        params = struct.pack("<12Q10I", *(scan.get(f, 0) for f in fields), *(scan.get(f, 0) for f in numbers))
        request = b"L" + struct.pack("<IIII", *grid, len(name), len(params)) + name.encode() + params
        assert self.ask(request, 1) == b"\1", f"no kernel {name}"

    def loaded(self):
        return struct.unpack("<Q", self.ask(b"C", 8))[0]


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def rank_of(key):
    bits = key >> 32
    bits = bits & 0x7FFFFFFF if bits >> 31 else ~bits & 0xFFFFFFFF
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def encode(encoding, vector, padded):
    """The bytes of a row, its scale, and the components that they stand for."""
    zeros = [0] * (padded - len(vector))
    if encoding == "f32":
        return struct.pack(f"<{padded}f", *vector, *zeros), 1.0, [single(x) for x in vector]
    if encoding == "f16":
        data = struct.pack(f"<{padded}e", *vector, *zeros)
        return data, 1.0, list(struct.unpack(f"<{padded}e", data))[:len(vector)]
    scale = single(max(map(abs, vector)) / 127)
    codes = [max(-127, min(127, round(x / scale))) if scale else 0 for x in vector]
    return struct.pack(f"<{padded}b", *codes, *zeros), scale, [c * scale for c in codes]


def halves(vector, padded):
    """A query as halves: scaled by a power of two that brings its largest component to [2^13, 2^14)."""
    largest = max(map(abs, vector))
    unit = 2.0 ** max(-126, min(126, math.frexp(largest)[1] - 14)) if largest else 2.0 ** -126
    return struct.pack(f"<{padded}e", *(x / unit for x in vector), *[0] * (padded - len(vector))), unit


def split(encoding, queries, padded):
    """Queries as `few` reads them: src/encode.rs has the layout."""
    own, eights = {"f32": (4, 1), "f16": (8, 2), "i8": (16, 4)}[encoding]
    places = [0.0] * (-(-padded // (4 * own)) * eights * 32 * 8)
    for at, query in enumerate(queries):
        largest = max(map(abs, query))
        unit = 2.0 ** max(-126, min(126, math.frexp(largest)[1] - 14)) if largest else 2.0 ** -126
        for component, x in enumerate(query):
            lane = at * 4 + component % (4 * own) // own
            (upper,) = struct.unpack("<e", struct.pack("<e", x / unit))
            for part, half in enumerate((upper, x / unit - upper)):
                if encoding == "f32":
                    place = (component // 16 * 32 + lane) * 8 + part * 4 + component % 4
                else:
                    piece = component // (4 * own) * (own // 8) + component % own // 8
                    place = ((piece * 2 + part) * 32 + lane) * 8 + component % 8
                places[place] = half
    return struct.pack(f"<{len(places)}e", *places)


def draw(random, kind, dim, count):
    if kind == "random":
        return [[random.uniform(-1, 1) for _ in range(dim)] for _ in range(count)]
    if kind == "clustered":
        centres = [[random.uniform(-1, 1) for _ in range(dim)] for _ in range(3)]
        return [[x + random.gauss(0, 1e-3) for x in random.choice(centres)] for _ in range(count)]
    # Equal vectors, zeros, and lengths from 1e-6 to 1e4.
    same = [random.uniform(-1, 1) for _ in range(dim)]
    shapes = [lambda: same, lambda: [0.0] * dim,
              lambda: [random.uniform(-1, 1) * 10 ** random.uniform(-6, 4) for _ in range(dim)]]
    return [random.choice(shapes)() for _ in range(count)]


def check(device, random, encoding, metric, kind, density, count, dim, k):
    where = f"{encoding} {metric} {kind}, density {density}, {count} vectors of {dim}, k {k}"
    padded = -(-dim // PADDED) * PADDED
    query_count = 5
    rows = [encode(encoding, vector, padded) for vector in draw(random, kind, dim, count)]
    queries = [[single(x) for x in q] for q in draw(random, kind if kind != "adversarial" else "random", dim, query_count)]
    matching = [random.random() < density for _ in range(count)]
    words = [sum(m << i for i, m in enumerate(matching[at:at + 32])) for at in range(0, count, 32)]
    stride = len(rows[0][0]) if rows else padded
    as_halves = [halves(q, padded) for q in queries]
    squares = [single(math.fsum(x * x for x in q)) for q in queries]
    scan = {
        "rows": device.hold(b"".join(r[0] for r in rows)),
        "scales": device.hold(struct.pack(f"<{count}f", *(r[1] for r in rows))),
        "measures": device.hold(bytes(8 * count)),
        "halves": device.hold(b"".join(h for h, _ in as_halves) + bytes(padded * 2 * (128 - query_count))),
        "query_measures": device.hold(b"".join(struct.pack("<ff", s, u) for s, (_, u) in zip(squares, as_halves))),
        "count": count, "stride": stride, "dim": padded, "query_count": query_count, "k": k, "blocks": 2,
    }
    if density < 1:
        scan["filter"] = device.hold(struct.pack(f"<{len(words)}I", *words))

    def rank(query, row):
        if metric == "l2":
            return -math.fsum((a - b) ** 2 for a, b in zip(query, row))
        return math.fsum(a * b for a, b in zip(query, row))

    exact = [[rank(q, r[2]) for r in rows] for q in queries]
    expected = [at for at in range(count) if matching[at]]
    length = max((math.sqrt(math.fsum(x * x for x in r[2])) for r in rows), default=0.0)

    def bound(query, unit):
        own = math.sqrt(math.fsum(x * x for x in query))
        return unit * ((own + length) ** 2 if metric == "l2" else own * length) + 1e-30

    # few: two passes, the second below the last key of the first.
    limits = [2 ** 64 - 1] * query_count
    found = [[] for _ in queries]
    device.launch(f"measure_{encoding}", (2, 1), scan)
    lanes = {"halves": device.hold(split(encoding, queries, padded))}
    for _ in range(2):
        held = {"limits": device.hold(struct.pack(f"<{query_count}Q", *limits) + bytes(8 * query_count)),
                "lists": device.hold(bytes(8 * k * query_count * 2)), "answers": device.hold(bytes(8 * k * query_count))}
        device.loaded()
        device.launch(f"few_{encoding}_{metric}", (2, 1), {**scan, **held, **lanes})
        assert device.loaded() == len(expected) * stride, f"{where}: bytes loaded"
        device.launch("merge", (query_count, 1), {**scan, **held})
        keys = device.read(held["answers"], "Q", k * query_count)
        for at in range(query_count):
            new = [key for key in keys[at * k:(at + 1) * k] if key]
            found[at] += new
            limits[at] = new[-1] if len(new) == k else 0
        device.free(held.values())
    for at, keys in enumerate(found):
        part = (padded + 18) * 2.0 ** -21 * (1 + (metric == "l2"))
        error = bound(queries[at], part)
        positions = [key & 0xFFFFFFFF for key in keys]
        assert keys == sorted(set(keys), reverse=True), f"{where}: order"
        assert len(keys) == min(2 * k, len(expected)) and all(matching[p] for p in positions), f"{where}: rows"
        for key, position in zip(keys, positions):
            assert abs(rank_of(key) - exact[at][position]) <= error, f"{where}: few is beyond its bound"
        if keys:
            least = rank_of(keys[-1])
            missed = [p for p in expected if exact[at][p] > least + error and p not in positions]
            assert not missed, f"{where}: few misses {missed}"

    # many: two stretches, then what is left of each list.
    coarse = (2.0 ** -10 + 2.0 ** -20 + (padded + 16) * 2.0 ** -21) * (2 if metric == "l2" else 1)
    margins = [2 * bound(q, coarse) for q in queries]
    held = {"limits": device.hold(NEGATIVE_INFINITY * query_count), "capacity": CAPACITY,
            "margins": device.hold(b"".join(struct.pack("<ff", margin, math.inf) for margin in margins)),
            "lists": device.hold(bytes(8 * CAPACITY * query_count)), "counts": device.hold(bytes(4 * query_count)),
            "overflowed": device.hold(bytes(4 * query_count)), "answers": device.hold(bytes(8 * CAPACITY * query_count))}
    first = min(count, 128)
    for start, length_of in ((0, first), (first, count - first)):
        device.launch(f"many_{encoding}_{metric}", (1, 2), {**scan, **held, "first": start, "count": length_of})
        room = CAPACITY if start else 0
        device.launch("keep", (query_count, 1), {**scan, **held, "room": room if start or count <= 128 else 0})
        if count <= 128:
            device.launch("keep", (query_count, 1), {**scan, **held, "room": CAPACITY})
            break
    counts, overflowed = device.read(held["counts"], "I", query_count), device.read(held["overflowed"], "I", query_count)
    assert not any(overflowed), f"{where}: overflow"
    for at in range(query_count):
        address = held["answers"] + 8 * CAPACITY * at
        keys = device.read(address, "Q", counts[at]) if counts[at] else ()
        positions = {key & 0xFFFFFFFF for key in keys}
        assert len(positions) == len(keys) and all(matching[p] for p in positions), f"{where}: rows of many"
        for key in keys:
            error = abs(rank_of(key) - exact[at][key & 0xFFFFFFFF])
            assert error <= margins[at] / 2, f"{where}: many is beyond its bound: {error}"
        best = sorted(expected, key=lambda p: exact[at][p], reverse=True)[:k]
        assert positions.issuperset(p for p in best), f"{where}: many misses one of the best"
    held.pop("capacity")
    device.free(lanes.values())
    device.free(held.values())
    device.free(scan[name] for name in ("rows", "scales", "measures", "filter", "halves", "query_measures")
                if name in scan)


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    small = mode != ""
    seed = int(os.environ.get("SEED", "1"))
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        device = Device(build(mode, folder))
        cases = 0
        for encoding in ("f32", "f16", "i8"):
            for metric in ("dot", "l2"):
                for kind in ("random",) if small else ("random", "clustered", "adversarial"):
                    for density in (0.5,) if small else (0.0, 0.02, 0.5, 1.0):
                        for count, dim, k in ((70, 33, 3),) if small else ((1, 1, 1), (65, 31, 1), (400, 40, 10), (700, 96, 128)):
                            check(device, generator, encoding, metric, kind, density, count, dim, k)
                            cases += 1
        device.process.stdin.close()
        status = device.process.wait()
        if status != 0:
            sys.exit(f"check.py: the emulator ended with status {status}")
    print(f"{cases} cases agree (seed {seed}{', ' + mode + ' sanitizer' if mode else ''})")


main()
