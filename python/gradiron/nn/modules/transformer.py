"""Transformer models and their encoder and decoder layers."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from ... import _core
from ..._core import Tensor
from .. import functional as F
from .._room import require_room
from ..init import xavier_uniform_
from .activation import GELU, MultiheadAttention, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Return a causal mask: minus infinity above the diagonal, zeros elsewhere."""
    return _core.triu(_core.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None, size: int) -> bool:
    """Return whether a mask is the causal mask; `is_causal`, if given, is believed without a look."""
    if is_causal is not None or mask is None:
        return is_causal is True
    if tuple(mask.shape) != (size, size):
        return False
    return bool((mask == _generate_square_subsequent_mask(size, mask.device, mask.dtype)).all())


def _sequence_length(x: Tensor, batch_first: bool) -> int:
    return x.size(1 if batch_first and x.dim() == 3 else 0)


def _get_clones(module: Module, count: int) -> ModuleList:
    require_room(count, module)
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _get_activation_fn(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return getattr(F, given)


class Transformer(Module):
    """Transformer model: an encoder, and a decoder that attends to the encoder's output.

    Embedding, positional encoding and the final linear layer are not included.

    Args:
        d_model: number of features of inputs and output. Default: `512`
        nhead: number of attention heads; must divide `d_model`. Default: `8`
        num_encoder_layers: number of encoder layers. Default: `6`
        num_decoder_layers: number of decoder layers. Default: `6`
        dim_feedforward: size of the hidden layer of the feedforward networks. Default: `2048`
        dropout: dropout probability. Default: `0.1`
        activation: activation of the feedforward networks: `"relu"`, `"gelu"` or a function. Default: `F.relu`
        custom_encoder: a module to use as encoder.
        custom_decoder: a module to use as decoder.
        layer_norm_eps: `eps` of the layer normalizations. Default: `1e-5`
        batch_first: whether tensors are `(N, L, d_model)` instead of `(L, N, d_model)`. Default: `False`
        norm_first: whether to normalize before attention and feedforward network instead of after them.
            Default: `False`
        bias: whether linear layers and layer normalizations have a bias. Default: `True`
        device, dtype: device and data type of the parameters.

    Shape:
        - Src: `(S, N, d_model)`, and tgt: `(T, N, d_model)`; the batch first with `batch_first`, or no batch.
        - Output: the shape of tgt.

    Examples:
        >>> model = nn.Transformer(8, 2, 1, 1, dim_feedforward=16)
        >>> model(torch.randn(5, 3, 8), torch.randn(4, 3, 8)).shape
        torch.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(*options, device=device, dtype=dtype)
            self.encoder: Any = TransformerEncoder(layer, num_encoder_layers, norm())
        else:
            self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*options, device=device, dtype=dtype)
            self.decoder: Any = TransformerDecoder(layer, num_decoder_layers, norm())
        else:
            self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for param in self.parameters():
            if param.dim() > 1:
                xavier_uniform_(param)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask of a sequence: minus infinity above the diagonal, zeros elsewhere.

        Args:
            sz: length of the sequence.
            device, dtype: device and data type of the mask.
        """
        return _generate_square_subsequent_mask(sz, device, dtype)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encode `src`, and decode `tgt` with attention to the encoded sequence.

        Args:
            src, tgt: sequences for encoder and decoder.
            src_mask, tgt_mask, memory_mask: attention masks of encoder, decoder, and decoder to encoder; `True`
                forbids a position, floats are added to the scores.
            src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask: `(N, length)`; `True` marks padding.
            src_is_causal, tgt_is_causal: whether the mask is causal; looked up in the mask if `None`.
            memory_is_causal: whether `memory_mask` is causal. Default: `False`
        """
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Args:
        encoder_layer: layer to copy `num_layers` times, with its weights, usually a `TransformerEncoderLayer`.
        num_layers: number of layers.
        norm: layer applied to the output.
        enable_nested_tensor: whether padded positions of the output become zeros in evaluation without gradients, as
            in PyTorch, which does not compute them. Default: `True`
        mask_check: whether this requires that padding comes last. Default: `True`

    Shape:
        - Input and output: `(S, N, d_model)`, or `(N, S, d_model)` if the layers have `batch_first`.

    Examples:
        >>> layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
        >>> encoder = nn.TransformerEncoder(layer, num_layers=2)
        >>> encoder(torch.randn(3, 5, 8)).shape
        torch.Size([3, 5, 8])
    """

    norm: Any

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        why_not = _why_not_nested(encoder_layer)
        if enable_nested_tensor and why_not:
            warnings.warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why_not}", stacklevel=2)
        self.use_nested_tensor = enable_nested_tensor and not why_not

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Pass `src` through all layers.

        Args:
            src: input sequence.
            mask: `(S, S)`; `True` forbids a position, floats are added to the attention scores.
            src_key_padding_mask: `(N, S)`; `True` marks padding.
            is_causal: whether `mask` is causal; looked up in the mask if `None`.
        """
        padding = F._canonical_mask(src_key_padding_mask, "src_key_padding_mask", F._none_or_dtype(mask), "mask", src.dtype)
        mask = F._canonical_mask(mask, "mask", None, "", src.dtype, check_other=False)
        first = self.layers[0]
        causal = _detect_is_causal_mask(mask, is_causal, _sequence_length(src, first.self_attn.batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and mask is None and self._drops_padding(src, padding):
            output = output.masked_fill((padding != 0).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _drops_padding(self, src: Tensor, padding: Tensor) -> bool:
        """Return whether PyTorch would skip padded positions, which leaves zeros in the output."""
        first = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3:
            return False
        if _core.is_grad_enabled() and any(t.requires_grad for t in (src, *first.parameters())):
            return False
        # Only padding at the end is skipped.
        hidden = (padding != 0).to(_core.int64)
        return not self.mask_check or not bool((hidden[:, 1:] < hidden[:, :-1]).any())


def _why_not_nested(layer: Any) -> str:
    """Return why PyTorch would not skip padding in evaluation, or an empty string if it would."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = {
        "norm_first was True": layer.norm_first,
        "self_attn.batch_first was not True(use batch_first for better inference performance)": not attention.batch_first,
        "self_attn._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        "self_attn was passed bias=False": attention.in_proj_bias is None,
        "activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        "norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        "self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }
    return next((f"encoder_layer.{reason}" for reason, holds in reasons.items() if holds), "")


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Args:
        decoder_layer: layer to copy `num_layers` times, with its weights, usually a `TransformerDecoderLayer`.
        num_layers: number of layers.
        norm: layer applied to the output.

    Shape:
        - Tgt and output: `(T, N, d_model)`, and memory: `(S, N, d_model)`; the batch first with `batch_first`.

    Examples:
        >>> layer = nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
        >>> decoder = nn.TransformerDecoder(layer, num_layers=2)
        >>> decoder(torch.randn(4, 3, 8), torch.randn(5, 3, 8)).shape
        torch.Size([4, 3, 8])
    """

    norm: Any

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Pass `tgt` and the encoder's output through all layers.

        Args:
            tgt: input sequence.
            memory: output of the encoder.
            tgt_mask, memory_mask: masks of the attention to `tgt` and to `memory`; `True` forbids a position.
            tgt_key_padding_mask, memory_key_padding_mask: `(N, length)`; `True` marks padding.
            tgt_is_causal: whether `tgt_mask` is causal; looked up in the mask if `None`.
            memory_is_causal: whether `memory_mask` is causal. Default: `False`
        """
        length = _sequence_length(tgt, self.layers[0].self_attn.batch_first)
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


def _attend(
    attention: MultiheadAttention, x: Tensor, to: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
) -> Tensor:
    return attention(x, to, to, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal)[0]


class TransformerEncoderLayer(Module):
    """Encoder layer of a transformer: self-attention and a feedforward network.

    Each of the two is followed by dropout, a residual connection and layer normalization.

    Args:
        d_model: number of features of input and output.
        nhead: number of attention heads; must divide `d_model`.
        dim_feedforward: size of the hidden layer of the feedforward networks. Default: `2048`
        dropout: dropout probability. Default: `0.1`
        activation: activation of the feedforward networks: `"relu"`, `"gelu"` or a function. Default: `F.relu`
        layer_norm_eps: `eps` of the layer normalizations. Default: `1e-5`
        batch_first: whether tensors are `(N, L, d_model)` instead of `(L, N, d_model)`. Default: `False`
        norm_first: whether to normalize before attention and feedforward network instead of after them.
            Default: `False`
        bias: whether linear layers and layer normalizations have a bias. Default: `True`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input and output: `(S, N, d_model)`, or `(N, S, d_model)` with `batch_first`.

    Examples:
        >>> layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)
        >>> layer(torch.randn(5, 3, 8)).shape
        torch.Size([5, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **place)
        self.linear1 = Linear(d_model, dim_feedforward, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **place)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **place)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)
        kinds = ((F.relu, ReLU), (F.gelu, GELU))
        found = (n for n, (fn, kind) in enumerate(kinds, 1) if self.activation is fn or isinstance(self.activation, kind))
        self.activation_relu_or_gelu = next(found, 0)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Apply self-attention and the feedforward network.

        Args:
            src: input sequence.
            src_mask: `(S, S)`; `True` forbids a position, floats are added to the attention scores.
            src_key_padding_mask: `(N, S)`; `True` marks padding.
            is_causal: whether `src_mask` is causal. Default: `False`
        """
        padding = F._canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", F._none_or_dtype(src_mask), "src_mask", src.dtype
        )
        mask = F._canonical_mask(src_mask, "src_mask", None, "", src.dtype, check_other=False)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Decoder layer of a transformer: self-attention, cross-attention and a feedforward network.

    Each of the three is followed by dropout, a residual connection and layer normalization.

    Args:
        d_model: number of features of inputs and output.
        nhead: number of attention heads; must divide `d_model`.
        dim_feedforward: size of the hidden layer of the feedforward networks. Default: `2048`
        dropout: dropout probability. Default: `0.1`
        activation: activation of the feedforward networks: `"relu"`, `"gelu"` or a function. Default: `F.relu`
        layer_norm_eps: `eps` of the layer normalizations. Default: `1e-5`
        batch_first: whether tensors are `(N, L, d_model)` instead of `(L, N, d_model)`. Default: `False`
        norm_first: whether to normalize before attention and feedforward network instead of after them.
            Default: `False`
        bias: whether linear layers and layer normalizations have a bias. Default: `True`
        device, dtype: device and data type of the parameters.

    Shape:
        - Tgt and output: `(T, N, d_model)`, and memory: `(S, N, d_model)`; the batch first with `batch_first`.

    Examples:
        >>> layer = nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
        >>> layer(torch.randn(4, 3, 8), torch.randn(5, 3, 8)).shape
        torch.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **place)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **place)
        self.linear1 = Linear(d_model, dim_feedforward, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **place)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **place)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, **place)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Apply self-attention, attention to `memory`, and the feedforward network.

        Args:
            tgt: input sequence.
            memory: output of the encoder.
            tgt_mask, memory_mask: masks of the attention to `tgt` and to `memory`; `True` forbids a position.
            tgt_key_padding_mask, memory_key_padding_mask: `(N, length)`; `True` marks padding.
            tgt_is_causal, memory_is_causal: whether the mask is causal. Default: `False`
        """
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self.dropout2(_attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
