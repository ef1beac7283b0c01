"""Rewrites the graph of the local model, so that it computes with the int8 weights that its file holds.

The file that is published stores its weights in int8 and computes in float: each weight is unpacked by a `Cast` and a
`Mul`, which the runtime does once, when it loads the model, and keeps at four times the size. Here products of matrices
become `DynamicQuantizeLinear` and `MatMulInteger`, and rows of the vocabulary are unpacked as they are looked up: half
the time for a text, and half the memory.

An ONNX file is a protobuf message. Only the fields that matter here are read and written; all others are copied. The
file is one whose sha256 is known, and so is that of the result (`weights`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from struct import pack, unpack

from denizen.domain.record import record

_VARINT, _LENGTH = 0, 2
"""Wire types of protobuf: a number, and bytes behind their length. The file has no others where it is read."""
_GRAPH = 7
"""A field of a model."""
_NODE, _INITIALIZER, _OUTPUT = 1, 5, 12
"""Fields of a graph."""
_FLOAT, _INT8 = 1, 3
"""Types of the numbers in a tensor."""
_BITS_LEFT = 64 / 127
"""Weights of 7 bits: two products of 8 bits overflow what processors without VNNI add them up in."""


@record
class _Field:
    number: int
    value: memoryview | int
    whole: memoryview
    """With what stands before the value."""

    @property
    def data(self) -> memoryview:
        assert isinstance(self.value, memoryview), "a field of bytes"
        return self.value

    @property
    def text(self) -> str:
        return bytes(self.data).decode()


@record
class _Node:
    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    written: memoryview | bytes


@dataclass(slots=True)
class _Graph:
    nodes: list[_Node] = field(default_factory=list[_Node])
    tensors: dict[str, memoryview] = field(default_factory=dict[str, memoryview])
    outputs: list[str] = field(default_factory=list[str])
    rest: list[memoryview] = field(default_factory=list[memoryview])


def rewrite_graph(model: bytes) -> bytes:
    """Returns the model with its products in int8."""
    fields = _read(memoryview(model))
    return b"".join(_rewrite(each.data) if each.number == _GRAPH else each.whole for each in fields)


def _rewrite(data: memoryview) -> bytes:
    graph = _read_graph(data)
    makers = {output: node for node in graph.nodes for output in node.outputs}
    nodes: list[_Node] = []
    quantized: set[str] = set()
    tensors: dict[str, memoryview | bytes] = {**graph.tensors}
    for node in graph.nodes:
        place = {"MatMul": 1, "Gather": 0}.get(node.operator, -1)
        packed = _find_packed(node.inputs[place], makers, graph.tensors) if place >= 0 else None
        if packed is None:
            nodes.append(node)
        elif node.operator == "Gather":
            nodes += _look_up(node, *packed)
        else:
            nodes += _multiply(node, *packed, quantizes=node.inputs[0] not in quantized)
            quantized.add(node.inputs[0])
            for name, factor in zip(packed, (_BITS_LEFT, 1 / _BITS_LEFT), strict=True):
                tensors[name] = _scale(graph.tensors[name], factor)
    written: list[memoryview | bytes] = [*(_bytes(_NODE, node.written) for node in _list_used(nodes, graph.outputs))]
    written += (_bytes(_INITIALIZER, tensor) for tensor in tensors.values())
    return _bytes(_GRAPH, b"".join([*written, *graph.rest]))


def _find_packed(value: str, makers: Mapping[str, _Node], tensors: Mapping[str, memoryview]) -> tuple[str, str] | None:
    """Returns the names of the int8 weights and of their scale that a value is unpacked from; None for others."""
    product = makers.get(value)
    cast = makers.get(product.inputs[0]) if product and product.operator == "Mul" else None
    if product is None or cast is None or cast.operator != "Cast":
        return None
    weights, scale = cast.inputs[0], product.inputs[1]
    is_packed = weights in tensors and scale in tensors and _type(tensors[weights]) == _INT8
    return (weights, scale) if is_packed else None


def _look_up(node: _Node, weights: str, scale: str) -> Iterator[_Node]:
    rows, name = node.inputs[1], node.outputs[0]
    yield _make("Gather", [weights, rows], [f"{name}.int8"])
    yield _make("Gather", [scale, rows], [f"{name}.scale"])
    yield _make("Cast", [f"{name}.int8"], [f"{name}.float"], to=_FLOAT)
    yield _make("Mul", [f"{name}.float", f"{name}.scale"], [name])


def _multiply(node: _Node, weights: str, scale: str, *, quantizes: bool) -> Iterator[_Node]:
    """The input is quantized once, however many products it is in."""
    given, name = node.inputs[0], node.outputs[0]
    if quantizes:
        yield _make("DynamicQuantizeLinear", [given], [f"{given}.int8", f"{given}.scale", f"{given}.zero"])
    yield _make("MatMulInteger", [f"{given}.int8", weights, f"{given}.zero"], [f"{name}.int32"])
    yield _make("Cast", [f"{name}.int32"], [f"{name}.float"], to=_FLOAT)
    yield _make("Mul", [f"{given}.scale", scale], [f"{name}.scale"])
    yield _make("Mul", [f"{name}.float", f"{name}.scale"], [name])


def _list_used(nodes: Sequence[_Node], outputs: Iterable[str]) -> list[_Node]:
    """Returns the nodes without those that nothing needs any more, in their order, in which inputs come first."""
    needed, used = set(outputs), list[_Node]()
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            used.append(node)
    return used[::-1]


def _scale(tensor: memoryview, factor: float) -> bytes:
    """Multiplies the numbers of a tensor, int8 or float."""
    is_int8 = _type(tensor) == _INT8
    written: list[memoryview | bytes] = []
    for each in _read(tensor):
        if each.number != 9:
            written.append(each.whole)
        elif is_int8:
            scaled = bytes(round((byte - 256 if byte > 127 else byte) * factor) & 0xFF for byte in range(256))
            written.append(_bytes(9, bytes(each.data).translate(scaled)))
        else:
            form = f"<{len(each.data) // 4}f"
            written.append(_bytes(9, pack(form, *(number * factor for number in unpack(form, each.data)))))
    return b"".join(written)


def _type(tensor: memoryview) -> int:
    return next((int(each.value) for each in _read(tensor) if each.number == 2 and isinstance(each.value, int)), 0)


def _read_graph(data: memoryview) -> _Graph:
    graph = _Graph()
    for each in _read(data):
        if each.number == _NODE:
            parts = list(_read(each.data))
            names = {number: [part.text for part in parts if part.number == number] for number in (1, 2, 4)}
            graph.nodes.append(_Node("".join(names[4]), names[1], names[2], each.data))
        elif each.number == _INITIALIZER:
            [name] = (part.text for part in _read(each.data) if part.number == 8)
            graph.tensors[name] = each.data
        else:
            if each.number == _OUTPUT:
                graph.outputs += (part.text for part in _read(each.data) if part.number == 1)
            graph.rest.append(each.whole)
    return graph


def _read(message: memoryview) -> Iterator[_Field]:
    at = 0
    while at < len(message):
        start = at
        tag, at = _read_number(message, at)
        number, wire_type = tag >> 3, tag & 7
        value, at = _read_number(message, at)
        if wire_type == _VARINT:
            yield _Field(number, value, message[start:at])
        elif wire_type == _LENGTH:
            at += value
            yield _Field(number, message[at - value : at], message[start:at])
        else:
            raise ValueError(f"a field of the wire type {wire_type}")


def _read_number(message: memoryview, at: int) -> tuple[int, int]:
    """Returns a number, of which each byte has 7 bits, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _make(operator: str, inputs: Sequence[str], outputs: Sequence[str], *, to: int = 0) -> _Node:
    parts = [*(_bytes(1, name.encode()) for name in inputs), *(_bytes(2, name.encode()) for name in outputs)]
    parts.append(_bytes(4, operator.encode()))
    if to:  # the attribute of a Cast: its name, its value, and that this is a whole number
        parts.append(_bytes(5, _bytes(1, b"to") + b"".join(map(_number, (3 << 3, to, 20 << 3, 2)))))
    return _Node(operator, inputs, outputs, b"".join(parts))


def _bytes(number: int, data: bytes | memoryview) -> bytes:
    return _number(number << 3 | _LENGTH) + _number(len(data)) + data


def _number(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
