#!/usr/bin/env python3
"""Checks a proof of holotype without holotype: python3 check_proof.py PROOF.json KEY

KEY is the signer's public key, NAME+ID+BASE64, or a file that holds it. Written from docs/format.md alone, with nothing but
Python's standard library; BLAKE3 and Ed25519 are below. Prints what the proof shows and ends with status 0, or says what does
not hold and ends with status 1.
"""

import base64
import binascii
import hashlib
import json
import os
import struct
import sys
import unicodedata


class Refused(Exception):
    pass


def need(holds, why):
    if not holds:
        raise Refused(why)


# ---- BLAKE3, hash mode, 32 bytes of output ----

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
MIXES = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
         (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
MASK = 0xFFFFFFFF


def compress(chaining, block, counter, length, flags):
    v = list(chaining) + list(IV[:4]) + [counter & MASK, counter >> 32, length, flags]
    m = list(struct.unpack("<16I", block.ljust(64, b"\0")))
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(MIXES):
            for word, first, second in ((m[2 * i], 16, 12), (m[2 * i + 1], 8, 7)):
                v[a] = (v[a] + v[b] + word) & MASK
                x = v[d] ^ v[a]
                v[d] = (x >> first | x << (32 - first)) & MASK
                v[c] = (v[c] + v[d]) & MASK
                x = v[b] ^ v[c]
                v[b] = (x >> second | x << (32 - second)) & MASK
        m = [m[i] for i in PERMUTATION]
    return [v[i] ^ v[i + 8] for i in range(8)]


def last_step(data, chunk):
    """The arguments of the compression that gives the hash of a subtree, which begins with that chunk."""
    if len(data) <= 1024:
        chaining, flags, at = IV, CHUNK_START, 0
        while len(data) - at > 64:
            chaining, flags, at = compress(chaining, data[at:at + 64], chunk, 64, flags), 0, at + 64
        return chaining, data[at:], chunk, len(data) - at, flags | CHUNK_END
    left = 1024
    while left * 2 < len(data):
        left *= 2
    children = compress(*last_step(data[:left], chunk)) + compress(*last_step(data[left:], chunk + left // 1024))
    return IV, struct.pack("<16I", *children), 0, 64, PARENT


def blake3(data):
    chaining, block, counter, length, flags = last_step(data, 0)
    return struct.pack("<8I", *compress(chaining, block, counter, length, flags | ROOT))


# ---- Ed25519, RFC 8032, verification ----

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, p):
    q = (0, 1, 1, 0)
    while n > 0:
        if n & 1:
            q = add(q, p)
        p, n = add(p, p), n >> 1
    return q


def encoded(p):
    z = pow(p[2], P - 2, P)
    x, y = p[0] * z % P, p[1] * z % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    need(y < P, "a point of the signature is none")
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    need((x * x - square) % P == 0 and (x or not sign), "a point of the signature is none")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = point(BASE_Y.to_bytes(32, "little"))


def signed(key, text, signature):
    need(len(signature) == 64, "a signature has 64 bytes")
    a, s = point(key), int.from_bytes(signature[32:], "little")
    need(s < L and encoded(times(8, a)) != encoded((0, 1, 1, 0)), "the key or the signature is a weak one")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), "little") % L
    minus_a = (P - a[0], a[1], 1, P - a[3])
    need(encoded(add(times(s, BASE), times(h, minus_a))) == signature[:32], "the signature does not hold")


# ---- the signed checkpoint ----

def unbase64(text, what):
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(what + " is not base64")
    need(base64.b64encode(data).decode() == text, what + " is not base64 in its one form")
    return data


def unhex(text, length, what):
    need(isinstance(text, str) and len(text) == 2 * length and not text.strip("0123456789abcdef"),
         "%s is not %d bytes in lower-case hexadecimal digits" % (what, length))
    return bytes.fromhex(text)


def checkpoint(note, verifier):
    """Size and root of a checkpoint that the key signed."""
    need(len(note.encode()) <= 65536, "the checkpoint is longer than 64 KiB")
    name, identity, key = verifier.strip().split("+", 2)
    need(name and not any(c.isspace() or unicodedata.category(c) == "Cc" for c in name), "the key's name is none")
    key = unbase64(key, "the key")
    need(len(key) == 33 and key[0] == 1, "the key is not one of Ed25519")
    need(hashlib.sha256(name.encode() + b"\n" + key).hexdigest()[:8] == identity, "the key's id is not its own")
    text, blank, signatures = note.rpartition("\n\n")
    need(blank and signatures.endswith("\n"), "the checkpoint is no signed note")
    text += "\n"
    need(not text.startswith("\n") and "\n\n" not in text, "the checkpoint has an empty line")
    need(not any(unicodedata.category(c) == "Cc" and c != "\n" for c in text), "the checkpoint has control characters")
    for line in signatures[:-1].split("\n"):
        line = line[:-1] if line.endswith("\r") else line
        need(line.startswith("\u2014 ") and line.count(" ") == 2, "a line is no signature")
        _, signer, signature = line.split(" ")
        signature = unbase64(signature, "a signature")
        need(len(signature) > 4, "a signature is empty")
        if signer == name and signature[:4].hex() == identity:
            signed(key[1:], text.encode(), signature[4:])
            break
    else:
        raise Refused("the checkpoint is not signed by " + name)
    lines = text.split("\n")
    need(len(lines) >= 4 and lines[0] == name, "the checkpoint is of another log")
    need(lines[1].isascii() and lines[1].isdigit() and str(int(lines[1])) == lines[1], "the size is no number")
    need(int(lines[1]) < 2**64, "the size is no number of 64 bits")
    root = unbase64(lines[2], "the root")
    need(len(root) == 32, "the root has other than 32 bytes")
    return int(lines[1]), root


# ---- the tree ----

def node(left, right):
    return blake3(b"\x01" + left + right)


def root_from(leaf, index, size, path):
    """RFC 9162, section 2.1.3.2."""
    need(0 <= index < size, "a record lies outside the tree")
    last = size - 1
    for sibling in path:
        need(last > 0, "a path is too long")
        if index & 1 or index == last:
            leaf = node(sibling, leaf)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            leaf = node(leaf, sibling)
        index, last = index >> 1, last >> 1
    need(last == 0, "a path is too short")
    return leaf


def continues(old, old_root, size, root, path):
    """RFC 9162, section 2.1.4.2."""
    need(old <= size, "the new checkpoint is of a shorter log")
    if old == size or old == 0:
        need(not path and old_root == (root if old else blake3(b"")), "the roots differ")
        return
    path = ([old_root] if old & (old - 1) == 0 else []) + path
    need(path, "the path is empty")
    index, last = old - 1, size - 1
    while index & 1:
        index, last = index >> 1, last >> 1
    before = after = path[0]
    for sibling in path[1:]:
        need(last > 0, "the path is too long")
        if index & 1 or index == last:
            before, after = node(sibling, before), node(sibling, after)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            after = node(after, sibling)
        index, last = index >> 1, last >> 1
    need(last == 0 and before == old_root and after == root, "the new log does not begin with the old one")


# ---- what the records say ----

class Payload:
    """Values in the order of their fields; docs/format.md, "Encoded values"."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        need(self.at + count <= len(self.data), "a payload is cut short")
        self.at += count
        return self.data[self.at - count:self.at]

    def raw(self, size):
        return int.from_bytes(self.take(size), "little")

    def number(self, size):
        return self.raw(size)

    def flag(self):
        byte = self.number(1)
        need(byte < 2, "a flag is neither 0 nor 1")
        return byte == 1

    def bytes(self):
        return self.take(self.number(8))

    def text(self):
        try:
            return self.bytes().decode()
        except UnicodeDecodeError:
            raise Refused("a string is not UTF-8")

    def option(self, read):
        return read() if self.flag() else None

    def many(self, read):
        return [read() for _ in range(self.number(8))]

    def end(self):
        need(self.at == len(self.data), "bytes are left over in a payload")


class CompactPayload(Payload):
    """The same in the compact form."""

    def number(self, size):
        first = self.raw(1)
        if size == 1 or first < 251:
            return first
        width = {251: 2, 252: 4, 253: 8}.get(first, 16)
        need(width <= size, "an integer is wider than its type")
        return self.raw(width)


def pointer_of(p):
    target = p.number(4)
    need(target < 2, "a pointer points to something unknown")
    return {"page": target == 1, "number": p.number(4), "field": p.text(),
            "start": p.number(8), "end": p.number(8), "hash": p.take(32)}


def field_of(p):
    name, form = p.text(), p.number(4)
    need(form < 4, "a field has an unknown form")
    if form < 2:
        return name, p.text().encode(), None
    if form == 2:
        return name, p.bytes(), None
    p.number(1)
    return name, None, p.number(8)


def item_of(p):
    item = {"id": p.number(4), "kind": p.number(1), "key": p.option(p.text)}
    p.option(lambda: p.number(4)), p.option(lambda: p.number(8)), p.option(lambda: p.number(8)), p.option(p.text)
    p.option(lambda: p.number(1)), p.option(lambda: p.number(1)), p.option(p.text), p.option(p.text), p.option(p.text)
    item["fields"] = p.many(lambda: field_of(p))
    item["from"] = p.many(lambda: pointer_of(p))
    p.option(lambda: p.raw(4)), p.option(lambda: p.number(1)), p.flag(), p.number(1), p.number(4), p.option(p.bytes)
    return item


NO_HASH = bytes(32)


class Shown:
    """What the records of a proof say."""

    def __init__(self):
        self.items, self.chunks, self.pages, self.pointers, self.redacted = {}, {}, {}, {}, set()

    def add(self, index, kind, payload, erased=False):
        p = CompactPayload(payload) if kind == 16 else Payload(payload)
        if kind == 33:
            p.number(8)
            erased, kind, payload = p.flag(), p.number(1), p.bytes()
            need(kind != 33, "a record is restated twice in one")
            self.add(index, kind, payload, erased)
        elif kind == 40:
            erased, kind, payload = p.flag() or erased, p.number(1), p.bytes()
            need(kind not in (33, 40), "what is told again was told again before")
            self.add(index, kind, payload, erased)
        elif kind in (4, 16):
            item = item_of(p)
            need(item["id"] not in self.items, "an item is shown twice")
            self.items[item["id"]] = dict(item, index=index, erased=erased)
        elif kind == 5:
            self.chunks[p.number(4), p.number(4), p.number(4)] = p.bytes()
        elif kind == 6:
            number, key = p.number(4), p.text()
            p.number(4), p.many(lambda: p.number(4)), p.number(8), p.text()
            self.pages[number] = key, p.take(32)
            p.flag()
        elif kind == 9:
            self.pointers[index] = p.number(4), p.many(lambda: pointer_of(p))
        else:
            raise Refused("records of type %d prove nothing of an item" % kind)
        p.end()

    def field(self, item, name):
        for number, (found, content, length) in enumerate(item["fields"]):
            if found == name:
                if content is None:
                    content, index = b"", 0
                    while (item["id"], number, index) in self.chunks:
                        content, index = content + self.chunks[item["id"], number, index], index + 1
                    need(len(content) == length, "the chunks of a field are not all shown")
                return content
        raise Refused("item #%d has no field %r" % (item["id"], name))

    def cited(self, pointer):
        number = pointer["number"]
        if pointer["page"]:
            need(number in self.pages, "a page that is cited is not shown")
            key, found = self.pages[number]
            if NO_HASH in (found, pointer["hash"]):
                return "page %s: redacted" % key
            need(found == pointer["hash"], "a page does not have the hash that is cited")
            return "page %s: ok" % key
        place = "#%d.%s[%d..%d]" % (number, pointer["field"], pointer["start"], pointer["end"])
        if number not in self.items:
            need(number in self.redacted, "item #%d, which is cited, is not shown" % number)
            return place + ": redacted"
        if pointer["hash"] == NO_HASH or self.items[number]["erased"]:
            return place + ": redacted"
        content = self.field(self.items[number], pointer["field"])
        need(pointer["start"] <= pointer["end"] <= len(content), place + " lies outside the field")
        span = content[pointer["start"]:pointer["end"]]
        need(blake3(span) == pointer["hash"], "the bytes of %s do not have the hash that is cited" % place)
        return "%s: ok: %s" % (place, span[:200].decode(errors="replace"))


# ---- proofs ----

def members(value, *names):
    """Refuses another member, or another order."""
    need(list(value) == list(names), "its members are not %s, in this order" % ", ".join(names))


def number(value, bits):
    need(type(value) is int and 0 <= value < 2**bits, "a number is not a whole one of %d bits" % bits)
    return value


def read(path):
    """The proof in a file. It has one text: what JSON would also allow, and a second member of a name, is refused."""
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    proof = json.loads(text)
    written = json.dumps(proof, indent=2, ensure_ascii=False)
    need(text in (written, written + "\n"), "it is not in canonical JSON")
    return proof


def check_item(proof, key):
    members(proof, "holotype_proof", "checkpoint", "item", "records")
    size, root = checkpoint(proof["checkpoint"], key)
    shown, indices, item = Shown(), set(), number(proof["item"], 32)
    for record in proof["records"]:
        index, path = number(record["index"], 64), [unhex(part, 32, "a hash") for part in record["path"]]
        need(index not in indices, "a record is shown twice")
        indices.add(index)
        if "redacted" in record:
            members(record, "index", "redacted", "item", "path")
            leaf = unhex(record["redacted"], 32, "a hash")
            shown.redacted.add(number(record["item"], 32))
        else:
            members(record, "index", "header", "salt", "payload", "path")
            header, salt = unhex(record["header"], 8, "a header"), unhex(record["salt"], 16, "a salt")
            payload = unbase64(record["payload"], "a payload")
            length, kind, flags, mark = struct.unpack("<IBB2s", header)
            need(length == len(payload) and flags == 0 and mark == b"Hr", "a header is not that of its payload")
            leaf = blake3(b"\x00" + header + salt + payload)
            shown.add(index, kind, payload)
        need(root_from(leaf, index, size, path) == root, "a path does not lead to the checkpoint's root")
    need(proof["records"], "no record is shown")
    first = proof["records"][0]
    print("log of %d records, root %s" % (size, root.hex()))
    if "redacted" in first:
        need(first["item"] == item, "the first record is another item's")
        print("item #%d: redacted" % item)
    else:
        need(item in shown.items and shown.items[item]["index"] == first["index"], "the first record is another's")
        forgotten = ", what is left of it" if shown.items[item]["erased"] else ""
        print("item #%d, key %s%s" % (item, shown.items[item]["key"], forgotten))
        for name, content, _ in shown.items[item]["fields"]:
            print("  %s = %s" % (name, shown.field(shown.items[item], name)[:200].decode(errors="replace")))
    pointers = list(shown.items.get(item, {"from": []})["from"])
    for _, (of, more) in sorted(shown.pointers.items()):
        pointers += more if of == item else []
    for line in [shown.cited(pointer) for pointer in pointers]:
        print("  cites " + line)


def check_growth(proof, key):
    members(proof, "holotype_growth", "old", "new", "path")
    (old, old_root), (size, root) = checkpoint(proof["old"], key), checkpoint(proof["new"], key)
    continues(old, old_root, size, root, [unhex(part, 32, "a hash") for part in proof["path"]])
    print("the log of %d records begins with that of %d" % (size, old))


def main(arguments):
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    key = arguments[2]
    if os.path.exists(key):
        with open(key, encoding="utf-8") as file:
            key = file.read()
    try:
        proof = read(arguments[1])
        if type(proof.get("holotype_growth")) is int and proof["holotype_growth"] == 1:
            check_growth(proof, key)
        else:
            version = proof.get("holotype_proof")
            need(type(version) is int and version == 1, "it is no proof of a known version")
            check_item(proof, key)
    except Refused as refused:
        print("the proof does not hold: %s" % refused, file=sys.stderr)
        return 1
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        print("the proof does not hold: it is malformed: %r" % error, file=sys.stderr)
        return 1
    print("the proof holds")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
