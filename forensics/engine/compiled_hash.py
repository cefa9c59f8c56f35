"""Vector code that the compiled kernel's loops call: 64 bytes of a line are masked, searched and hashed at a time.

Written for LLVM, which makes of it what the processor has (AVX-512, AVX2, SSE2, NEON). Imported only to compile.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

STRIPE = 64
"""Bytes read at once; as many must be readable behind the last line's end."""
_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_BYTES, _WORDS = ir.VectorType(_BYTE, STRIPE), ir.VectorType(_WORD, STRIPE // 8)
_FULL = (1 << 64) - 1
_STEP, _MIX, _FOLD = 0xD1B54A32D192ED03, 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
_KEYS = [(_MIX * (2 * i + 3)) & _FULL | 1 for i in range(_WORDS.count)]
_FOLDS = [(_FOLD * (2 * i + 5)) & _FULL | 1 for i in range(_WORDS.count)]
helper: Any = numba.njit(error_model="numpy", inline="always")
"""Functions that the loops take in."""
_loose: Any = intrinsic
"""What it decorates has no type for the checker: a call has other arguments than the definition."""
_types: Any = types
_TEXT = _types.CPointer(types.uint8)


def _all(number: int, kind: Any = _BYTES) -> ir.Constant:
    """A vector with that number in each place."""
    return ir.Constant(kind, [number] * kind.count)


@_loose  # type: ignore[untyped-decorator]
def masked_line(_context: Any, text: Any, at: Any, seed: Any) -> Any:
    """Length of the line that begins at `at` and the hash of its mask, both uint64.

    The hash takes the length in: equal words and another number of zero bytes are another line. Who does not know the
    `seed` cannot write two lines that have the same."""
    return _types.UniTuple(_types.uint64, 2)(_TEXT, _types.int64, _types.int64), _masked_line


@_loose  # type: ignore[untyped-decorator]
def word_at(_context: Any, text: Any, at: Any) -> Any:
    """Eight bytes from `at` on as one uint64, the first the lowest."""
    return _types.uint64(_TEXT, types.int64), _word_at


@_loose  # type: ignore[untyped-decorator]
def fetch(_context: Any, text: Any, at: Any) -> Any:
    """Ask for the 256 bytes from `at` on, which will be read soon."""
    return _types.void(_TEXT, _types.int64), _fetch


def _fetch(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    text, at = arguments
    short = ir.IntType(32)
    name = "llvm.prefetch.p0"
    pointer = _BYTE.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, short, short, short])
    ask = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    for line in range(0, 256, 64):
        place = builder.gep(text, [builder.add(at, ir.Constant(_WORD, line))], source_etype=_BYTE)
        builder.call(ask, [place, *(ir.Constant(short, n) for n in (0, 3, 1))])
    return context.get_dummy_value()


def _word_at(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    text, at = arguments
    place = builder.gep(text, [at], source_etype=_BYTE)
    return builder.load(builder.bitcast(place, _WORD.as_pointer()), align=1, typ=_WORD)


def _masked_line(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    text, at, seed = arguments
    before = builder.block
    first = builder.xor(ir.Constant(_WORDS, _KEYS), _spread(builder, seed, _WORDS))
    stripe, more, last = (builder.function.append_basic_block(name) for name in ("stripe", "more", "last"))
    builder.branch(stripe)

    builder.position_at_end(stripe)
    place, state, key = builder.phi(_WORD), builder.phi(_WORDS), builder.phi(_WORDS)
    place.add_incoming(at, before)
    state.add_incoming(_all(0, _WORDS), before)
    key.add_incoming(first, before)
    pointer = builder.bitcast(builder.gep(text, [place], source_etype=_BYTE), _BYTES.as_pointer())
    found = builder.load(pointer, align=1, typ=_BYTES)
    ends = builder.bitcast(builder.icmp_unsigned("==", found, _all(10)), _WORD)
    digits = builder.icmp_unsigned("<", builder.sub(found, _all(48)), _all(10))
    masked = builder.select(digits, _all(48), found)
    builder.cbranch(builder.icmp_unsigned("==", ends, ir.Constant(_WORD, 0)), more, last)

    builder.position_at_end(more)
    place.add_incoming(builder.add(place, ir.Constant(_WORD, STRIPE)), more)
    state.add_incoming(_mixed(builder, masked, state, key), more)
    key.add_incoming(builder.add(key, _all(_STEP, _WORDS)), more)
    builder.branch(stripe)

    builder.position_at_end(last)
    left = builder.cttz(ends, ir.Constant(ir.IntType(1), 1))
    inside = builder.icmp_unsigned(
        "<", ir.Constant(_BYTES, list(range(STRIPE))), _spread(builder, builder.trunc(left, _BYTE), _BYTES)
    )
    state = _mixed(builder, builder.select(inside, masked, _all(0)), state, key)
    length = builder.sub(builder.add(place, left), at)
    return context.make_tuple(builder, signature.return_type, [length, _folded(builder, state, length)])


def _mixed(builder: Any, masked: Any, state: Any, key: Any) -> Any:
    """The state after one more stripe: of each word the product of its halves under the stripe's key, and itself."""
    word = builder.bitcast(masked, _WORDS)
    keyed = builder.xor(word, key)
    half = _all(32, _WORDS)
    product = builder.mul(builder.and_(keyed, _all(0xFFFFFFFF, _WORDS)), builder.lshr(keyed, half))
    turned = builder.or_(builder.shl(word, half), builder.lshr(word, half))
    return builder.add(state, builder.add(product, turned))


def _spread(builder: Any, number: Any, kind: Any) -> Any:
    """A vector with that number in each place."""
    short = ir.IntType(32)
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(short, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(short, kind.count), [0] * kind.count))


def _folded(builder: Any, state: Any, length: Any) -> Any:
    """One word of a state and a length."""
    state = builder.xor(state, builder.lshr(state, _all(29, _WORDS)))
    state = builder.mul(state, ir.Constant(_WORDS, _FOLDS))
    name = f"llvm.vector.reduce.add.v{_WORDS.count}i64"
    add = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(_WORD, [_WORDS]), name)
    word = builder.xor(builder.call(add, [state]), length)
    for shift in (32, 29):
        word = builder.mul(word, ir.Constant(_WORD, _MIX))
        word = builder.xor(word, builder.lshr(word, ir.Constant(_WORD, shift)))
    return word
