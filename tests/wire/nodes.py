"""What a list of paths asks of a message, as a tree: the slow twin of the plan builder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

_SPAN_TYPES = {
    FieldDescriptor.TYPE_STRING,
    FieldDescriptor.TYPE_BYTES,
    FieldDescriptor.TYPE_MESSAGE,
}


def is_repeated(fd: FieldDescriptor) -> bool:
    """Whether the field is repeated (a map is)."""
    return bool(fd.is_repeated)


def is_span(fd: FieldDescriptor) -> bool:
    """Whether a value of the field is given as where it lies."""
    return fd.type in _SPAN_TYPES


@dataclass(eq=False)
class Node:
    """One message of a projection, which is one table."""

    path: str
    message: Descriptor
    above: Node | None
    is_frame: bool
    everything: bool = False
    own_span: bool = False
    leaves: dict[str, bool] = field(default_factory=dict)
    """Singular field -> whether its presence is asked for."""
    values: list[str] = field(default_factory=list)
    unions: list[str] = field(default_factory=list)
    children: dict[str, Node] = field(default_factory=dict)
    """Field -> its node; an enclosing one where the message recurs."""
    recurs: bool = False

    @property
    def frame(self) -> Node:
        """The node that is a row each time it occurs: this one or the nearest above."""
        return self if self.is_frame or self.above is None else self.above.frame

    @property
    def wanted(self) -> set[str]:
        """Names of the fields and oneofs asked for."""
        return {*self.leaves, *self.values, *self.unions, *self.children}

    def join(self, name: str) -> str:
        """The path of ``name`` below this node."""
        return f"{self.path}.{name}" if self.path else name

    def walk(self) -> Iterator[Node]:
        """This node and all below it, each once."""
        yield self
        for child in self.children.values():
            if child.above is self:
                yield from child.walk()

    def cases(self) -> list[OneofDescriptor]:
        """Oneofs of which something is asked."""
        request = [*self.leaves, *self.children]
        result = [self.message.oneofs_by_name[name] for name in self.unions]
        for name in request:
            oneof = self.message.fields_by_name[name].containing_oneof
            if oneof is not None and oneof not in result and len(oneof.fields) > 1:
                result.append(oneof)
        return result

    def is_mixed(self, path: str) -> bool:
        """Whether rows of ``path`` come from several fields of this message."""
        return sum(child.path == path for child in self.children.values()) > 1


def parse_paths(message: Descriptor, paths: Iterable[str]) -> Node:
    """The root of the tree. Raises ValueError for a field named in two ways."""
    root = Node("", message, None, is_frame=True)
    everything: list[Node] = []
    for path in paths:
        *names, last = path.split(".")
        node = root
        for name in names:
            node = _explicit_child(node, name)
        if last == "**":
            everything.append(node)
        else:
            _ask(node, last)
    for node in everything:
        _mark(node)
    for node in everything:
        _expand(node)
    for node in root.walk():
        twice = set(node.children) & {*node.leaves, *node.values}
        if twice:
            raise ValueError(f"{node.join(twice.pop())!r} named in two ways")
    return root


def _explicit_child(node: Node, name: str) -> Node:
    fd = node.message.fields_by_name[name]
    assert fd.message_type is not None
    if name not in node.children:
        node.children[name] = Node(node.join(name), fd.message_type, node, is_repeated(fd))
    return node.children[name]


def _ask(node: Node, last: str) -> None:
    message = node.message
    if last == "*":
        for fd in message.fields:
            if fd.message_type is None and not is_repeated(fd):
                node.leaves.setdefault(fd.name, False)
    elif last == "@span":
        node.own_span = True
    elif last in message.oneofs_by_name:
        node.unions.append(last)
    elif last != "@":
        name = last.removesuffix("?")
        if is_repeated(message.fields_by_name[name]):
            node.values += [] if name in node.values else [name]
        else:
            node.leaves[name] = node.leaves.get(name, False) or last.endswith("?")


def _mark(node: Node) -> None:
    for inner in node.walk():
        inner.everything = True


def _expand(node: Node) -> None:
    for fd in node.message.fields:
        if fd.message_type is None:
            if is_repeated(fd):
                node.values += [] if fd.name in node.values else [fd.name]
            else:
                node.leaves.setdefault(fd.name, False)
        elif fd.name in node.children:
            _expand(node.children[fd.name])
        elif is_repeated(fd):
            frame: Node | None = node.frame
            while frame is not None and frame.above is not None:
                if frame.everything and frame.message is fd.message_type:
                    break
                frame = frame.above.frame
            if frame is not None and frame.above is not None:
                frame.recurs = True
                node.children[fd.name] = frame
            else:
                _new_child(node, fd)
        else:
            above: Node | None = node
            while above is not None and above.frame is node.frame:
                if above.everything and above.message is fd.message_type:
                    node.leaves.setdefault(fd.name, False)
                    break
                above = above.above
            else:
                _new_child(node, fd)


def _new_child(node: Node, fd: FieldDescriptor) -> None:
    assert fd.message_type is not None
    child = Node(node.join(fd.name), fd.message_type, node, is_repeated(fd), everything=True)
    node.children[fd.name] = child
    _expand(child)
