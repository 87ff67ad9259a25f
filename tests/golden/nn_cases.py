"""What make_nn.py records and tests compare: first values, layers with what they print, hold, return and hand back."""

import functools
import inspect
import math
import re
import warnings

# A shape, and what is done to `x`, an empty tensor of that shape.
INITS = [
    ("4, 5", "init.uniform_(x)"),
    ("4, 5", "init.uniform_(x, -2.0, 3.0)"),
    ("40,", "init.normal_(x, 1.0, 2.0)"),
    ("7,", "init.normal_(x)"),
    ("3, 4", "init.constant_(x, 0.3)"),
    ("3, 4", "init.ones_(x)"),
    ("3, 4", "init.zeros_(x)"),
    ("3, 5", "init.eye_(x)"),
    ("4, 3, 3", "init.dirac_(x)"),
    ("4, 2, 3, 4", "init.dirac_(x, 2)"),
    ("2, 3, 3, 3, 3", "init.dirac_(x)"),
    ("4, 5", "init.xavier_uniform_(x)"),
    ("4, 5, 3", "init.xavier_uniform_(x, gain=init.calculate_gain('relu'))"),
    ("4, 5", "init.xavier_normal_(x, 0.7)"),
    ("4, 5", "init.kaiming_uniform_(x)"),
    ("4, 5, 3, 3", "init.kaiming_uniform_(x, a=math.sqrt(5), mode='fan_out')"),
    ("4, 5, 3", "init.kaiming_normal_(x, mode='fan_in', nonlinearity='relu')"),
    ("4, 5", "init.kaiming_normal_(x, 0.1, mode='fan_out', nonlinearity='leaky_relu')"),
    ("30, 20", "init.trunc_normal_(x)"),
    ("30, 20", "init.trunc_normal_(x, 0.5, 2.0, -1.0, 1.5)"),
    ("30, 20", "init.trunc_normal_(x, std=0.02)"),
    ("30, 20", "init.trunc_normal_(x, 0.0, 1.0, 1.5, 3.0)"),
    ("30, 20", "init.trunc_normal_(x, 1.0, 10.0, -1.0, 1.0)"),
    ("4, 4", "init.orthogonal_(x)"),
    ("3, 7", "init.orthogonal_(x)"),
    ("7, 3", "init.orthogonal_(x, gain=2.0)"),
    ("6, 2, 3", "init.orthogonal_(x)"),
    ("6, 5", "init.sparse_(x, 0.3)"),
    ("10, 3", "init.sparse_(x, 0.5, std=2.0)"),
]

VECTOR, SEQUENCE, IMAGE, VOLUME = "T.randn(4, 6)", "T.randn(2, 4, 7)", "T.randn(2, 4, 6, 7)", "T.randn(2, 4, 4, 5, 4)"
PADDED = "T.tensor([[False, False, False], [False, False, True]])"

# How a layer is made, then its inputs. `eval: ` before it leaves training, and `none: ` calls it without gradients.
LAYERS = [
    ("nn.Identity(3, x=1)", VECTOR),
    ("nn.Linear(6, 3)", VECTOR),
    ("nn.Linear(6, 3, bias=False)", "T.randn(2, 3, 6)"),
    ("nn.Linear(6, 3, dtype=T.float64)", "T.randn(4, 6, dtype=T.float64)"),
    ("nn.LazyLinear(3)", VECTOR),
    ("nn.LazyLinear(3, bias=False)", VECTOR),
    ("nn.Bilinear(6, 5, 3)", VECTOR, "T.randn(4, 5)"),
    ("nn.Bilinear(6, 5, 3, bias=False)", VECTOR, "T.randn(4, 5)"),
    ("nn.Flatten()", IMAGE),
    ("nn.Flatten(2, -1)", IMAGE),
    ("nn.Unflatten(1, (2, 3))", VECTOR),
    # activations
    ("nn.Threshold(0.1, 20)", VECTOR),
    ("nn.Threshold(0.1, 20, True)", VECTOR),
    ("nn.ReLU()", VECTOR),
    ("nn.ReLU(inplace=True)", VECTOR),
    ("nn.RReLU()", VECTOR),
    ("nn.RReLU(0.1, 0.3, True)", VECTOR),
    ("eval: nn.RReLU()", VECTOR),
    ("nn.Hardtanh()", VECTOR),
    ("nn.Hardtanh(-0.5, 0.7, True)", VECTOR),
    ("nn.ReLU6()", VECTOR),
    ("nn.ReLU6(True)", VECTOR),
    ("nn.Sigmoid()", VECTOR),
    ("nn.Hardsigmoid()", VECTOR),
    ("nn.Tanh()", VECTOR),
    ("nn.SiLU()", VECTOR),
    ("nn.SiLU(True)", VECTOR),
    ("nn.Mish()", VECTOR),
    ("nn.Mish(True)", VECTOR),
    ("nn.Hardswish()", VECTOR),
    ("nn.Hardswish(True)", VECTOR),
    ("nn.ELU()", VECTOR),
    ("nn.ELU(0.5, True)", VECTOR),
    ("nn.CELU()", VECTOR),
    ("nn.CELU(0.5, True)", VECTOR),
    ("nn.SELU()", VECTOR),
    ("nn.SELU(True)", VECTOR),
    ("nn.GLU()", VECTOR),
    ("nn.GLU(0)", VECTOR),
    ("nn.GELU()", VECTOR),
    ("nn.GELU('tanh')", VECTOR),
    ("nn.Hardshrink()", VECTOR),
    ("nn.Hardshrink(0.2)", VECTOR),
    ("nn.LeakyReLU()", VECTOR),
    ("nn.LeakyReLU(0.2, True)", VECTOR),
    ("nn.LogSigmoid()", VECTOR),
    ("nn.Softplus()", VECTOR),
    ("nn.Softplus(2, 0.5)", VECTOR),
    ("nn.Softshrink()", VECTOR),
    ("nn.PReLU()", VECTOR),
    ("nn.PReLU(6, 0.1)", VECTOR),
    ("nn.Softsign()", VECTOR),
    ("nn.Tanhshrink()", VECTOR),
    ("nn.Softmin(1)", VECTOR),
    ("nn.Softmax(1)", VECTOR),
    ("nn.Softmax2d()", IMAGE),
    ("nn.LogSoftmax(0)", VECTOR),
    # dropout
    ("nn.Dropout()", VECTOR),
    ("nn.Dropout(0.2, True)", VECTOR),
    ("nn.Dropout(0.0)", VECTOR),
    ("nn.Dropout(1.0)", VECTOR),
    ("eval: nn.Dropout()", VECTOR),
    ("nn.Dropout1d()", SEQUENCE),
    ("nn.Dropout1d(0.3)", "T.randn(8, 7)"),
    ("nn.Dropout2d(0.3)", IMAGE),
    ("nn.Dropout2d(0.3, True)", IMAGE),
    ("nn.Dropout3d()", VOLUME),
    ("nn.Dropout3d(0.3)", "T.randn(8, 2, 2, 3)"),
    ("nn.AlphaDropout(0.4)", VECTOR),
    ("nn.FeatureAlphaDropout(0.4)", IMAGE),
    # convolutions
    ("nn.Conv1d(4, 3, 3)", SEQUENCE),
    ("nn.Conv1d(4, 6, 3, 2, 1, groups=2, bias=False)", SEQUENCE),
    ("nn.Conv1d(4, 3, 4, padding='same', dilation=2)", SEQUENCE),
    ("nn.Conv1d(4, 3, 3, padding=2, padding_mode='circular')", SEQUENCE),
    ("nn.Conv2d(4, 3, 3)", IMAGE),
    ("nn.Conv2d(4, 3, 3)", "T.randn(4, 6, 7)"),
    ("nn.Conv2d(4, 8, (3, 2), stride=2, padding=(1, 0), dilation=(1, 2), groups=4)", IMAGE),
    ("nn.Conv2d(4, 3, 3, padding='same')", IMAGE),
    ("nn.Conv2d(4, 3, 3, padding='valid', bias=False)", IMAGE),
    ("nn.Conv2d(4, 3, 3, padding=1, padding_mode='reflect')", IMAGE),
    ("nn.Conv2d(4, 3, 4, padding='same', padding_mode='replicate')", IMAGE),
    ("nn.Conv3d(4, 3, 2)", VOLUME),
    ("nn.Conv3d(4, 2, (2, 3, 1), (1, 2, 1), 1)", VOLUME),
    ("nn.ConvTranspose1d(4, 3, 3)", SEQUENCE),
    ("nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, 2, False)", SEQUENCE),
    ("nn.ConvTranspose2d(4, 3, 4, 2, 1)", IMAGE),
    ("nn.ConvTranspose2d(4, 3, 3, stride=2, output_padding=1)", IMAGE),
    ("nn.ConvTranspose2d(4, 3, 3, stride=2)", IMAGE, "[14, 16]"),
    ("nn.ConvTranspose3d(4, 3, 2)", VOLUME),
    ("nn.LazyConv1d(3, 3)", SEQUENCE),
    ("nn.LazyConv2d(3, 3, padding=1)", IMAGE),
    ("nn.LazyConv3d(3, 2, bias=False)", VOLUME),
    ("nn.LazyConvTranspose1d(3, 3)", SEQUENCE),
    ("nn.LazyConvTranspose2d(3, 3, 2)", IMAGE),
    ("nn.LazyConvTranspose3d(3, 2)", VOLUME),
    # pooling
    ("nn.MaxPool1d(3)", SEQUENCE),
    ("nn.MaxPool1d(2, 1, 1, 2, True, True)", SEQUENCE),
    ("nn.MaxPool2d(2)", IMAGE),
    ("nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0), ceil_mode=True)", IMAGE),
    ("nn.MaxPool2d(2, return_indices=True)", IMAGE),
    ("nn.MaxPool3d(2)", VOLUME),
    ("nn.MaxUnpool1d(2)", "T.randn(1, 1, 3)", "T.tensor([[[0, 3, 5]]])"),
    ("nn.MaxUnpool2d(2, stride=2)", "T.randn(1, 1, 2, 2)", "T.tensor([[[[0, 3], [9, 14]]]])"),
    ("nn.MaxUnpool3d(2)", "T.randn(1, 1, 1, 1, 1)", "T.tensor([[[[[3]]]]])"),
    ("nn.AvgPool1d(3)", SEQUENCE),
    ("nn.AvgPool1d(2, 1, 1, True, False)", SEQUENCE),
    ("nn.AvgPool2d(2)", IMAGE),
    ("nn.AvgPool2d(3, stride=(2, 1), padding=1, ceil_mode=True, count_include_pad=False)", IMAGE),
    ("nn.AvgPool2d(2, divisor_override=3)", IMAGE),
    ("nn.AvgPool3d(2)", VOLUME),
    ("nn.FractionalMaxPool2d(2, output_size=3)", IMAGE),
    ("nn.FractionalMaxPool2d((2, 3), output_ratio=(0.5, 0.6))", IMAGE),
    ("nn.FractionalMaxPool3d(2, output_ratio=0.5)", VOLUME),
    ("nn.LPPool1d(2, 3)", "T.rand(2, 4, 7)"),
    ("nn.LPPool2d(1.5, 2, stride=1)", "T.rand(2, 4, 6, 7)"),
    ("nn.LPPool2d(float('inf'), 2)", IMAGE),
    ("nn.LPPool3d(2, 2)", VOLUME),
    ("nn.AdaptiveMaxPool1d(3)", SEQUENCE),
    ("nn.AdaptiveMaxPool2d((3, None))", IMAGE),
    ("nn.AdaptiveMaxPool2d(2, return_indices=True)", IMAGE),
    ("nn.AdaptiveMaxPool3d(2)", VOLUME),
    ("nn.AdaptiveAvgPool1d(3)", SEQUENCE),
    ("nn.AdaptiveAvgPool2d((1, 1))", IMAGE),
    ("nn.AdaptiveAvgPool2d((None, 3))", IMAGE),
    ("nn.AdaptiveAvgPool3d(2)", VOLUME),
    # padding
    *((f"nn.{kind}Pad1d(2)", SEQUENCE) for kind in ("Circular", "Reflection", "Replication", "Zero")),
    *((f"nn.{kind}Pad2d((1, 2, 0, 3))", IMAGE) for kind in ("Circular", "Reflection", "Replication", "Zero")),
    *((f"nn.{kind}Pad3d(1)", VOLUME) for kind in ("Circular", "Reflection", "Replication", "Zero")),
    ("nn.ConstantPad1d((1, 2), 3.5)", SEQUENCE),
    ("nn.ConstantPad2d(1, -1.0)", IMAGE),
    ("nn.ConstantPad3d((1, 0, 0, 2, 1, 1), 0.5)", VOLUME),
    # normalisation
    ("nn.BatchNorm1d(6)", VECTOR),
    ("nn.BatchNorm1d(4, eps=1e-3, momentum=None)", SEQUENCE),
    ("nn.BatchNorm1d(6, affine=False, track_running_stats=False)", VECTOR),
    ("eval: nn.BatchNorm1d(6)", VECTOR),
    ("nn.BatchNorm2d(4)", IMAGE),
    ("nn.BatchNorm2d(4, bias=False)", IMAGE),
    ("eval: nn.BatchNorm2d(4, track_running_stats=False)", IMAGE),
    ("nn.BatchNorm3d(4, momentum=0.3)", VOLUME),
    ("nn.SyncBatchNorm(4)", IMAGE),
    ("nn.LazyBatchNorm1d()", VECTOR),
    ("nn.LazyBatchNorm2d(momentum=0.5)", IMAGE),
    ("nn.LazyBatchNorm3d(affine=False)", VOLUME),
    ("nn.InstanceNorm1d(4)", SEQUENCE),
    ("nn.InstanceNorm1d(4)", "T.randn(4, 7)"),
    ("nn.InstanceNorm2d(4, affine=True, track_running_stats=True)", IMAGE),
    ("eval: nn.InstanceNorm2d(4, track_running_stats=True)", IMAGE),
    ("nn.InstanceNorm3d(4)", VOLUME),
    ("nn.LazyInstanceNorm1d(affine=True)", SEQUENCE),
    ("nn.LazyInstanceNorm2d()", IMAGE),
    ("nn.LazyInstanceNorm3d(track_running_stats=True)", VOLUME),
    ("nn.LayerNorm(6)", VECTOR),
    ("nn.LayerNorm([6, 7], eps=1e-3, bias=False)", IMAGE),
    ("nn.LayerNorm(6, elementwise_affine=False)", VECTOR),
    ("nn.GroupNorm(2, 4)", IMAGE),
    ("nn.GroupNorm(4, 4, affine=False)", SEQUENCE),
    ("nn.RMSNorm(6)", VECTOR),
    ("nn.RMSNorm((6, 7), eps=1e-3, elementwise_affine=False)", IMAGE),
    ("nn.LocalResponseNorm(3)", IMAGE),
    ("nn.LocalResponseNorm(2, 0.1, 0.5, 2.0)", SEQUENCE),
    ("none: nn.CrossMapLRN2d(3, 0.5)", "T.randn(2, 7, 2, 2)"),
    ("none: nn.CrossMapLRN2d(2)", IMAGE),
    # tables
    ("nn.Embedding(10, 3)", "T.tensor([[1, 2], [4, 9]])"),
    ("nn.Embedding(10, 3, padding_idx=-1)", "T.tensor([1, 9, 4])"),
    ("nn.Embedding(10, 3, 2, max_norm=1.0, norm_type=1.5, scale_grad_by_freq=True)", "T.tensor([1, 2, 1])"),
    ("nn.Embedding.from_pretrained(T.arange(12.0).reshape(4, 3))", "T.tensor([3, 0])"),
    ("nn.EmbeddingBag(10, 3)", "T.tensor([[1, 2], [4, 9]])"),
    ("nn.EmbeddingBag(10, 3, mode='sum', padding_idx=1)", "T.tensor([1, 2, 4, 5])", "T.tensor([0, 3])"),
    ("nn.EmbeddingBag(10, 3, mode='max', max_norm=2.0)", "T.tensor([1, 2, 4, 5])", "T.tensor([0, 1])"),
    # recurrent layers
    ("nn.RNN(6, 5)", "T.randn(3, 2, 6)"),
    ("nn.RNN(6, 5, 2, nonlinearity='relu', bias=False)", "T.randn(3, 2, 6)", "T.randn(2, 2, 5)"),
    ("nn.RNN(6, 5, batch_first=True, bidirectional=True)", "T.randn(2, 3, 6)"),
    ("nn.RNN(6, 5)", "T.randn(3, 6)"),
    ("nn.LSTM(6, 5)", "T.randn(3, 2, 6)"),
    ("nn.LSTM(6, 5, 2, bidirectional=True, batch_first=True)", "T.randn(2, 3, 6)"),
    ("nn.LSTM(6, 5, proj_size=2)", "T.randn(3, 2, 6)"),
    ("nn.LSTM(6, 5)", "T.randn(3, 2, 6)", "(T.randn(1, 2, 5), T.randn(1, 2, 5))"),
    ("nn.LSTM(6, 5)", "T.randn(3, 6)", "(T.randn(1, 5), T.randn(1, 5))"),
    ("eval: nn.LSTM(6, 5, 2, dropout=0.5)", "T.randn(3, 2, 6)"),
    ("nn.LSTM(6, 5)", "nn.utils.rnn.pack_sequence([T.randn(3, 6), T.randn(2, 6), T.randn(1, 6)])"),
    ("nn.GRU(6, 5)", "T.randn(3, 2, 6)"),
    ("nn.GRU(6, 5, 2, bidirectional=True)", "T.randn(3, 2, 6)", "T.randn(4, 2, 5)"),
    ("nn.GRU(6, 5)", "nn.utils.rnn.pack_sequence([T.randn(2, 6), T.randn(3, 6)], enforce_sorted=False)"),
    ("nn.RNNCell(6, 5)", VECTOR),
    ("nn.RNNCell(6, 5, False, 'relu')", VECTOR, "T.randn(4, 5)"),
    ("nn.LSTMCell(6, 5)", VECTOR),
    ("nn.LSTMCell(6, 5, bias=False)", "T.randn(6)", "(T.randn(5), T.randn(5))"),
    ("nn.GRUCell(6, 5)", VECTOR, "T.randn(4, 5)"),
    ("nn.GRUCell(6, 5)", "T.randn(6)"),
    # attention
    ("nn.MultiheadAttention(6, 2)", *["T.randn(3, 2, 6)"] * 3),
    ("Own(nn.MultiheadAttention(6, 2, batch_first=True))", "T.randn(2, 3, 6)"),
    ("Own(nn.MultiheadAttention(6, 2, batch_first=True, bias=False), need_weights=False)", "T.randn(2, 3, 6)"),
    ("Own(nn.MultiheadAttention(6, 2), average_attn_weights=False)", "T.randn(3, 6)"),
    (f"Own(nn.MultiheadAttention(6, 2, batch_first=True), key_padding_mask={PADDED})", "T.randn(2, 3, 6)"),
    ("Own(nn.MultiheadAttention(6, 2), attn_mask=nn.Transformer.generate_square_subsequent_mask(3))", "T.randn(3, 2, 6)"),
    ("nn.MultiheadAttention(6, 2, kdim=4, vdim=5)", "T.randn(3, 2, 6)", "T.randn(4, 2, 4)", "T.randn(4, 2, 5)"),
    ("nn.MultiheadAttention(6, 3, 0.5, add_bias_kv=True, add_zero_attn=True)", *["T.randn(3, 2, 6)"] * 3),
    ("nn.TransformerEncoderLayer(6, 2, 8, 0.0)", "T.randn(3, 2, 6)"),
    ("nn.TransformerEncoderLayer(6, 2, 8, activation='gelu', norm_first=True, bias=False)", "T.randn(3, 2, 6)"),
    ("nn.TransformerDecoderLayer(6, 2, 8, 0.0)", "T.randn(3, 2, 6)", "T.randn(4, 2, 6)"),
    ("nn.TransformerDecoderLayer(6, 2, 8, 0.0, batch_first=True, norm_first=True)", "T.randn(2, 3, 6)", "T.randn(2, 4, 6)"),
    (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True), 2, nn.LayerNorm(6))",
        "T.randn(2, 3, 6)",
    ),
    (
        "none: eval: Own(nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), 2), "
        f"src_key_padding_mask={PADDED}, keys=0)",
        "T.randn(2, 3, 6)",
    ),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0.0), 2)", "T.randn(3, 2, 6)", "T.randn(4, 2, 6)"),
    ("nn.Transformer(6, 2, 1, 1, 8, 0.0, batch_first=True)", "T.randn(2, 3, 6)", "T.randn(2, 4, 6)"),
    # losses
    ("nn.L1Loss()", VECTOR, VECTOR),
    ("nn.MSELoss(reduction='sum')", VECTOR, VECTOR),
    ("nn.SmoothL1Loss(beta=0.5)", VECTOR, VECTOR),
    ("nn.HuberLoss('none', 0.7)", VECTOR, VECTOR),
    ("nn.NLLLoss(T.rand(6))", VECTOR, "T.tensor([1, 0, 5, 2])"),
    ("nn.CrossEntropyLoss(ignore_index=2, label_smoothing=0.1)", VECTOR, "T.tensor([1, 0, 5, 2])"),
    ("nn.CrossEntropyLoss()", VECTOR, "T.rand(4, 6).softmax(1)"),
    ("nn.LinearCrossEntropyLoss(6, 3)", VECTOR, "T.tensor([1, 0, 2, 2])"),
    ("nn.LinearCrossEntropyLoss(6, 3, bias=True, out_features=(2,))", VECTOR, "T.tensor([[1, 0], [2, 2], [0, 0], [1, 1]])"),
    ("nn.PoissonNLLLoss()", VECTOR, "T.rand(4, 6)"),
    ("nn.PoissonNLLLoss(False, True)", "T.rand(4, 6)", "T.rand(4, 6) * 3"),
    ("nn.GaussianNLLLoss()", VECTOR, VECTOR, "T.rand(4, 6)"),
    ("nn.GaussianNLLLoss(full=True, reduction='none')", VECTOR, VECTOR, "T.rand(4, 1)"),
    ("nn.KLDivLoss(reduction='batchmean')", "T.randn(4, 6).log_softmax(1)", "T.randn(4, 6).softmax(1)"),
    ("nn.KLDivLoss(reduction='sum', log_target=True)", "T.randn(4, 6).log_softmax(1)", "T.randn(4, 6).log_softmax(1)"),
    ("nn.BCELoss()", "T.rand(4, 6)", "T.rand(4, 6)"),
    ("nn.BCEWithLogitsLoss(pos_weight=T.rand(6))", VECTOR, "T.rand(4, 6)"),
    ("nn.HingeEmbeddingLoss()", VECTOR, "T.randn(4, 6).sign()"),
    ("nn.MultiLabelMarginLoss()", VECTOR, "T.tensor([[3, 0, -1, 0, 0, 0]] * 4)"),
    ("nn.SoftMarginLoss()", VECTOR, "T.randn(4, 6).sign()"),
    ("nn.MultiLabelSoftMarginLoss()", VECTOR, "T.rand(4, 6).round()"),
    ("nn.MultiLabelSoftMarginLoss(T.rand(6), reduction='none')", VECTOR, "T.rand(4, 6).round()"),
    ("nn.CosineEmbeddingLoss(0.1)", VECTOR, VECTOR, "T.tensor([1, -1, 1, -1])"),
    ("nn.MarginRankingLoss(0.5)", "T.randn(6)", "T.randn(6)", "T.randn(6).sign()"),
    ("nn.MultiMarginLoss(2, 0.5)", VECTOR, "T.tensor([1, 0, 5, 2])"),
    ("nn.TripletMarginLoss(swap=True)", VECTOR, VECTOR, VECTOR),
    ("nn.TripletMarginWithDistanceLoss(margin=0.5, swap=True)", VECTOR, VECTOR, VECTOR),
    ("nn.TripletMarginWithDistanceLoss(distance_function=nn.CosineSimilarity(), reduction='sum')", VECTOR, VECTOR, VECTOR),
    (
        "nn.CTCLoss()",
        "T.randn(6, 2, 5).log_softmax(2)",
        "T.tensor([[1, 2, 3], [4, 4, 0]])",
        "T.tensor([6, 5])",
        "T.tensor([3, 2])",
    ),
    # the rest
    ("nn.PairwiseDistance()", VECTOR, VECTOR),
    ("nn.PairwiseDistance(1.0, 1e-3, True)", VECTOR, VECTOR),
    ("nn.CosineSimilarity()", VECTOR, VECTOR),
    ("nn.CosineSimilarity(0, 1e-3)", VECTOR, VECTOR),
    ("nn.Upsample(scale_factor=2)", SEQUENCE),
    ("nn.Upsample((5, 9), mode='bilinear', align_corners=True)", IMAGE),
    ("nn.Upsample(scale_factor=(1.5, 2), mode='bicubic')", IMAGE),
    ("nn.UpsamplingNearest2d(scale_factor=2)", IMAGE),
    ("nn.UpsamplingBilinear2d((8, 9))", IMAGE),
    ("nn.PixelShuffle(2)", IMAGE),
    ("nn.PixelUnshuffle(2)", "T.randn(1, 2, 4, 6)"),
    ("nn.ChannelShuffle(2)", IMAGE),
    ("nn.Fold((4, 5), (2, 2))", "T.randn(1, 8, 12)"),
    ("nn.Unfold(2, padding=1, stride=2)", IMAGE),
    ("nn.utils.weight_norm(nn.Linear(6, 3))", VECTOR),
    ("nn.utils.weight_norm(nn.Linear(6, 3), dim=None)", VECTOR),
    ("nn.utils.spectral_norm(nn.Linear(6, 3), n_power_iterations=2)", VECTOR),
    ("eval: nn.utils.spectral_norm(nn.Linear(6, 3))", VECTOR),
    ("nn.utils.parametrizations.weight_norm(nn.Linear(6, 3), dim=1)", VECTOR),
    ("nn.utils.parametrizations.spectral_norm(nn.Linear(6, 3))", VECTOR),
    ("nn.utils.parametrizations.spectral_norm(nn.Linear(6, 3), 'bias')", VECTOR),
    ("nn.utils.parametrizations.spectral_norm(nn.ConvTranspose1d(4, 3, 2))", SEQUENCE),
    ("nn.utils.parametrizations.orthogonal(nn.Linear(6, 6))", VECTOR),
    ("nn.utils.parametrizations.orthogonal(nn.Linear(6, 3))", VECTOR),
    ("nn.utils.parametrizations.orthogonal(nn.Linear(3, 6))", "T.randn(4, 3)"),
    ("nn.utils.parametrizations.orthogonal(nn.Linear(3, 6), orthogonal_map='matrix_exp')", "T.randn(4, 3)"),
    ("nn.utils.parametrizations.orthogonal(nn.Linear(6, 6), use_trivialization=False)", VECTOR),
    ("nn.utils.parametrizations.orthogonal(nn.Linear(6, 4), orthogonal_map='householder', use_trivialization=False)", VECTOR),
    ("nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 8], div_value=2.0)", "T.randn(5, 8)", "T.tensor([1, 5, 11, 3, 9])"),
    ("nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 8], head_bias=True)", "T.randn(8)", "T.tensor(6)"),
]


# What is refused, or warned of.
ERRORS = """
nn.Linear(3, 2)(T.randn(4, 5))
nn.Linear('a', 2)
nn.Linear(3, 2, 1, 2, 3, 4)
nn.Linear(2.5, 3)
nn.Linear(-1, 3)
nn.Linear(0, 3)
nn.Bilinear(0, 2, 3)
nn.Unflatten(1, 3)
nn.Unflatten(1, (2, 'a'))
nn.Unflatten(1.5, (2, 3))
nn.Unflatten(1, (2, 3))(T.randn(2, 5))
nn.Flatten(2)(T.randn(3))
nn.Hardtanh(1, 0)
nn.Hardtanh(min_value=-2)
nn.Hardtanh(max_value=2)
nn.Softmax2d()(T.randn(2))
nn.Softmax()(T.randn(2))
nn.Softmax(3)(T.randn(2))
nn.GELU('no')(T.randn(2))
nn.Dropout(1.5)
nn.Dropout(-0.1)
nn.Dropout1d()(T.randn(2))
nn.Dropout2d()(T.randn(2))
nn.Dropout2d()(T.randn(2, 3, 4))
nn.Dropout3d()(T.randn(2, 3, 4))
nn.Dropout3d()(T.randn(2))
nn.AlphaDropout(2)
nn.FeatureAlphaDropout()(T.randn(2))
nn.functional.dropout(T.randn(2), 2.5)
nn.functional.alpha_dropout(T.randn(2), -1.0)
nn.Conv2d(3, 4, 2, groups=2)
nn.Conv2d(2, 3, 2, groups=2)
nn.Conv2d(2, 2, 2, groups=0)
nn.Conv2d(2, 2, 2, padding='no')
nn.Conv2d(2, 2, 2, padding='same', stride=2)
nn.Conv2d(2, 2, 2, padding_mode='no')
nn.ConvTranspose2d(2, 2, 2, padding_mode='reflect')
nn.ConvTranspose1d(2, 2, 2, stride=2)(T.randn(1, 2, 3), [9])
nn.ConvTranspose1d(2, 2, 2, stride=2)(T.randn(1, 2, 3), [9, 9])
nn.LazyConv1d(2, 2)(T.randn(3))
nn.LazyConv1d(2, 2, groups=2)(T.randn(1, 3, 4))
nn.LazyLinear(2).weight.shape
nn.BatchNorm1d(3)(T.randn(3))
nn.BatchNorm2d(3)(T.randn(3, 3))
nn.BatchNorm3d(3)(T.randn(3, 3))
nn.SyncBatchNorm(3)(T.randn(3))
nn.InstanceNorm1d(3)(T.randn(3))
nn.InstanceNorm2d(3, affine=True)(T.randn(1, 2, 3, 3))
nn.InstanceNorm3d(3)(T.randn(3, 3))
nn.GroupNorm(2, 3)
nn.LayerNorm((3, 4))(T.randn(4, 3))
nn.LocalResponseNorm(2)(T.randn(3))
nn.CrossMapLRN2d(2)(T.randn(3))
nn.CircularPad1d(1)(T.randn(3))
nn.CircularPad2d(1)(T.randn(3))
nn.CircularPad3d(1)(T.randn(3))
nn.FractionalMaxPool2d(2)
nn.FractionalMaxPool2d(2, 2, 0.5)
nn.FractionalMaxPool2d(2, output_ratio=2)
nn.FractionalMaxPool3d(0, 2)
nn.LPPool1d(0, 2)
nn.functional.lp_pool1d(T.randn(1, 1, 4), 0, 2)
nn.Embedding(3, 2, 3)
nn.Embedding(3, 2, -4)
nn.Embedding(3, 2, _weight=T.randn(2, 2))
nn.Embedding.from_pretrained(T.randn(3))
nn.EmbeddingBag(3, 2, padding_idx=3)
nn.EmbeddingBag.from_pretrained(T.randn(3))
nn.RNN(2, 3, nonlinearity='no')
nn.RNN(2, 3, proj_size=1)
nn.GRU(2, 3, proj_size=1)
nn.LSTM(2, 3, proj_size=3)
nn.LSTM(2, 3, proj_size=-1)
nn.LSTM(2, 3, dropout=2)
nn.LSTM(2, 3, dropout=True)
nn.LSTM(2, 3, dropout=0.5)
nn.LSTM(2, 0)
nn.LSTM(0, 2)
nn.LSTM(2.0, 3)
nn.LSTM(2, 3, 0)
nn.LSTM(2, 3, bias=1)
nn.LSTM(2, 3, batch_first=1)
nn.RNNBase('no', 2, 3)
nn.LSTM(2, 3)(T.randn(2))
nn.RNN(2, 3)(T.randn(2))
nn.GRU(2, 3)(T.randn(2))
nn.LSTM(2, 3)(T.randn(2, 2, 4))
nn.LSTM(2, 3)(T.randn(2, 2, 2, dtype=T.float64))
nn.LSTM(2, 3)(T.randn(2, 2, 2), (T.randn(1, 2, 3), T.randn(1, 3, 3)))
nn.LSTM(2, 3)(T.randn(2, 2, 2), (T.randn(1, 1, 3), T.randn(1, 2, 3)))
nn.LSTM(2, 3)(T.randn(2, 2, 2), (T.randn(1, 3), T.randn(1, 3)))
nn.LSTM(2, 3)(T.randn(2, 2), (T.randn(1, 1, 3), T.randn(1, 3)))
nn.GRU(2, 3)(T.randn(2, 2, 2), T.randn(1, 3))
nn.GRU(2, 3)(T.randn(2, 2), T.randn(1, 1, 3))
nn.GRU(2, 3)(T.randn(2, 2, 2), T.randn(1, 3, 3))
nn.RNNCell(2, 3)(T.randn(1, 1, 2))
nn.RNNCell(2, 3)(T.randn(1, 2), T.randn(1, 1, 3))
nn.RNNCell(2, 3, nonlinearity='no')(T.randn(1, 2))
nn.LSTMCell(2, 3)(T.randn(1, 1, 2))
nn.LSTMCell(2, 3)(T.randn(1, 2), (T.randn(1, 1, 3), T.randn(1, 3)))
nn.GRUCell(2, 3)(T.randn(1, 1, 2))
nn.MultiheadAttention(5, 2)
nn.MultiheadAttention(0, 2)
nn.MultiheadAttention(4, 2)(T.randn(4), T.randn(4), T.randn(4))
nn.MultiheadAttention(4, 2)(T.randn(3, 4), T.randn(3, 1, 4), T.randn(3, 4))
nn.MultiheadAttention(4, 2)(T.randn(3, 1, 4), T.randn(3, 4), T.randn(3, 4))
nn.MultiheadAttention(4, 2)(*[T.randn(3, 4)] * 3, key_padding_mask=T.zeros(1, 3))
nn.MultiheadAttention(4, 2)(*[T.randn(3, 2, 4)] * 3, key_padding_mask=T.zeros(3))
nn.MultiheadAttention(4, 2)(*[T.randn(3, 2, 4)] * 3, key_padding_mask=T.zeros(2, 4))
nn.MultiheadAttention(4, 2)(*[T.randn(3, 2, 4)] * 3, attn_mask=T.zeros(3))
nn.MultiheadAttention(4, 2)(*[T.randn(3, 2, 4)] * 3, attn_mask=T.zeros(2, 3))
nn.MultiheadAttention(4, 2)(*[T.randn(3, 2, 4)] * 3, attn_mask=T.zeros(2, 3, 3))
nn.MultiheadAttention(4, 2)(*[T.randn(3, 4)] * 3, attn_mask=T.zeros(1, 3, 3))
nn.MultiheadAttention(4, 2)(*[T.randn(3, 2, 4)] * 3, attn_mask=T.zeros(3, 3, dtype=T.int64))
nn.MultiheadAttention(4, 2)(*[T.randn(3, 2, 4)] * 3, attn_mask=T.zeros(3, 3), key_padding_mask=T.zeros(2, 3, dtype=T.bool))
nn.MultiheadAttention(4, 2)(*[T.randn(3, 2, 4)] * 3, is_causal=True)
nn.MultiheadAttention(4, 2)(*[T.randn(3, 2, 6)] * 3)
nn.MultiheadAttention(4, 2)(T.randn(3, 2, 4), T.randn(3, 2, 4), T.randn(2, 2, 4))
nn.MultiheadAttention(4, 2, kdim=3)(T.randn(3, 2, 4), T.randn(3, 2, 3), T.randn(2, 2, 4))
nn.MultiheadAttention(4, 2, kdim=3)(T.randn(3, 2, 4), T.randn(3, 2, 4), T.randn(3, 2, 4))
nn.TransformerEncoderLayer(4, 2, activation='no')
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 1)
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, batch_first=True, norm_first=True), 1)
nn.TransformerEncoder(nn.TransformerEncoderLayer(3, 3, batch_first=True), 1)
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, batch_first=True, activation=T.sigmoid), 1)
nn.TransformerEncoder(nn.Linear(1, 1), 1)
nn.Transformer(4, 2, 1, 1, batch_first=True)(T.randn(2, 3, 4), T.randn(1, 3, 4))
nn.Transformer(4, 2, 1, 1, batch_first=True)(T.randn(2, 3, 3), T.randn(2, 3, 4))
nn.MSELoss('no')
nn.MSELoss(reduction='no')(T.randn(2), T.randn(2))
nn.L1Loss(size_average=False)
nn.L1Loss(reduce=False)
nn.L1Loss(True, True)
nn.MSELoss()(T.randn(2, 1), T.randn(2))
nn.HuberLoss(delta='a')
nn.HuberLoss(delta=-1.0)(T.randn(2), T.randn(2))
nn.SmoothL1Loss(beta=-1.0)(T.randn(2), T.randn(2))
nn.CrossEntropyLoss()(T.randn(2, 3), T.tensor([1, 5]))
nn.CrossEntropyLoss()(T.randn(2, 3), T.tensor([1]))
nn.NLLLoss2d()
nn.BCELoss()(T.rand(2), T.rand(3))
nn.BCELoss()(T.rand(2) + 1, T.rand(2))
nn.BCEWithLogitsLoss()(T.rand(2), T.rand(3))
nn.GaussianNLLLoss()(T.randn(2), T.randn(2), T.tensor([1.0, -1.0]))
nn.GaussianNLLLoss()(T.randn(2), T.randn(2), -1.0)
nn.GaussianNLLLoss()(T.randn(2, 3), T.randn(2, 3), T.rand(3))
nn.GaussianNLLLoss(reduction='no')(T.randn(2), T.randn(2), T.rand(2))
nn.MultiLabelSoftMarginLoss(reduction='no')(T.randn(2, 3), T.rand(2, 3))
nn.MultiMarginLoss(3)
nn.MultiMarginLoss(weight=T.rand(2, 2))
nn.TripletMarginLoss(0)
nn.TripletMarginWithDistanceLoss(margin=-1)
nn.TripletMarginWithDistanceLoss(reduction='no')(T.randn(2, 3), T.randn(2, 3), T.randn(2, 3))
nn.TripletMarginWithDistanceLoss()(T.randn(2, 3), T.randn(3), T.randn(2, 3))
nn.LinearCrossEntropyLoss(3, 2, weight=T.rand(3))
nn.LinearCrossEntropyLoss(3, 2, label_smoothing=2)
nn.LinearCrossEntropyLoss(3, 2)(T.randn(2, 4), T.tensor([0, 1]))
nn.LinearCrossEntropyLoss(3, 2)(T.randn(2, 2, 3), T.tensor([0, 1]))
nn.LinearCrossEntropyLoss(3, 2, out_features=(2,))(T.randn(3), T.tensor([0, 1]))
nn.LinearCrossEntropyOptions(chunking_method='no')
nn.LinearCrossEntropyOptions(batch_chunk_size=0)
nn.LinearCrossEntropyOptions(acc_dtype=T.int64)
nn.AdaptiveLogSoftmaxWithLoss(4, 6, [])
nn.AdaptiveLogSoftmaxWithLoss(4, 6, [3, 2])
nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 6])
nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])(T.randn(2, 4), T.tensor([1, 6]))
nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])(T.randn(2, 4), T.tensor([1]))
nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])(T.randn(4), T.tensor([1, 2, 3, 4]))
nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])(T.randn(1, 4), T.tensor(1))
nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])(T.randn(1, 4), T.tensor([[1]]))
nn.CosineSimilarity()(T.randn(3), T.randn(3))
nn.CosineSimilarity(0)(T.arange(3), T.arange(3))
nn.PairwiseDistance()(T.randn(3, 2), T.randn(2, 3))
nn.PixelShuffle(2)(T.randn(3, 4, 4))
nn.PixelShuffle(2)(T.randn(4))
nn.PixelShuffle(0)(T.randn(4, 4, 4))
nn.PixelUnshuffle(2)(T.randn(4, 4, 5))
nn.PixelUnshuffle(2)(T.randn(4, 5, 4))
nn.ChannelShuffle(2)(T.randn(3, 4))
nn.ChannelShuffle(2)(T.randn(1, 3, 4))
nn.ChannelShuffle(0)(T.randn(1, 3, 4))
nn.functional.one_hot(T.tensor([-1]))
nn.functional.one_hot(T.tensor([3]), 2)
nn.functional.one_hot(T.tensor([1.0]))
nn.functional.one_hot(T.tensor([], dtype=T.int64))
nn.functional.one_hot(T.tensor([1]), 0)
nn.functional.gumbel_softmax(T.randn(2), eps=1e-3)
nn.functional.normalize(T.randn(2), dim=3)
nn.functional.upsample(T.randn(1, 1, 2, 2), 3)
nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), dim=5)
nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), 'no')
nn.utils.spectral_norm(nn.Linear(2, 2, bias=False), 'bias')
nn.utils.weight_norm(nn.LazyLinear(2))
nn.utils.spectral_norm(nn.LazyLinear(2))
""".strip().splitlines()


def complaint(T, code):
    """The kind and the text of the error or warnings that a piece of code gives."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        T.manual_seed(0)
        try:
            eval(code, {"T": T, "nn": T.nn})
            error = []
        except Exception as e:
            error = [[type(e).__name__, str(e.args[0] if e.args else "")]]
    found = [[w.category.__name__, str(w.message)] for w in told] + error
    # Sets come in any order.
    return [[kind, re.sub(r"\{'.*?'\}", lambda m: str(sorted(eval(m[0]))), text)] for kind, text in found]


def numbers(t):
    """A tensor as its shape, its first values, and two sums that see every value and its place."""
    flat = [float(v) for v in t.detach().cpu().reshape(-1).tolist()]
    finite = [v for v in flat if math.isfinite(v)]
    return {
        "shape": list(t.shape),
        "dtype": str(t.dtype).removeprefix("torch."),
        "first": [f"{v:.8g}" for v in flat[:3]],
        "sum": float(f"{sum(finite):.8g}"),
        "woven": float(f"{sum(v * math.cos(i) for i, v in enumerate(finite)):.8g}"),
        "size": float(f"{sum(abs(v) for v in finite):.5g}"),
    }


def tensors(value, T):
    if isinstance(value, T.Tensor):
        return [value]
    return [t for part in value for t in tensors(part, T)] if isinstance(value, (tuple, list)) else []


def moved(value, device, T):
    if isinstance(value, (T.Tensor, T.nn.utils.rnn.PackedSequence)):
        return value.to(device)
    return tuple(moved(part, device, T) for part in value) if isinstance(value, tuple) else value


def run(T, code, inputs, found=None, device="cpu"):
    """Makes a layer, calls it, and goes back: all that there is to compare, in `found` as far as it came."""
    found = {} if found is None else found
    nn = T.nn

    class Own(nn.Module):
        """One input in all places that want one."""

        def __init__(self, inner, keys=2, **options):
            super().__init__()
            self.inner, self.keys, self.options = inner, keys, options

        def forward(self, x):
            return self.inner(x, *(x,) * self.keys, **self.options)

    names = {"T": T, "nn": nn, "Own": Own}
    flags, _, bare = code.rpartition(": ") if code.startswith(("eval: ", "none: ")) else ("", "", code)
    T.manual_seed(0)
    layer = eval(bare, names).to(device)
    if "eval" in flags:
        layer.eval()
    found["repr"] = repr(layer)
    found["attributes"] = sorted(n for n in vars(layer) if not n.startswith("_flat_weight"))
    lazy = "Lazy" in bare
    if not lazy:
        found["state"] = {name: numbers(t) for name, t in layer.state_dict().items()}
    T.manual_seed(1)
    given = [moved(eval(text, names), device, T) for text in inputs]
    # Targets want no gradients.
    wanted = [] if "none" in flags else given[:1] if "Loss(" in bare else given
    leaves = [t for t in tensors(wanted, T) if t.is_floating_point() and t.is_leaf]
    for t in leaves:
        t.requires_grad_()
    # What is changed in place must not be a leaf.
    handed = [t * 1 if isinstance(t, T.Tensor) and t.requires_grad else t for t in given]
    T.manual_seed(2)
    with T.set_grad_enabled("none" not in flags):
        out = tensors(layer(*handed), T)
    found["out"] = [numbers(t) for t in out]
    if lazy:
        found["repr"], found["state"] = repr(layer), {name: numbers(t) for name, t in layer.state_dict().items()}
    loss = 0
    for t in out:
        if t.requires_grad:
            loss = loss + (t * T.cos(T.arange(t.numel(), dtype=t.dtype, device=device)).reshape(t.shape)).sum()
    if isinstance(loss, T.Tensor):
        loss.backward()
    found["grads"] = [None if t.grad is None else numbers(t.grad) for t in leaves]
    found["weights"] = {n: numbers(p.grad) for n, p in layer.named_parameters() if p.grad is not None}
    found["after"] = {name: numbers(t) for name, t in layer.named_buffers()}
    return found


def signatures(T):
    """The parameters of all layers and of the functions around them, with their defaults."""
    holders = {"nn": [n for n in T.nn.modules.__all__], "nn.init": T.nn.init.__all__, "nn.utils": T.nn.utils.__all__}
    made = {}
    for home, names in holders.items():
        holder = functools.reduce(getattr, home.split("."), T)
        for name in names:
            thing = getattr(holder, name)
            if inspect.ismodule(thing):
                continue
            call = thing.__init__ if inspect.isclass(thing) else thing
            made[f"{home}.{name}"] = [
                [
                    p.name,
                    str(p.kind.value),
                    getattr(p.default, "__name__", repr(p.default)) if p.default is not p.empty else None,
                ]
                for p in inspect.signature(call).parameters.values()
            ]
    return made


def first_values(T, shape, code):
    T.manual_seed(0)
    x = T.empty(eval(f"({shape})"))
    result = eval(code, {"T": T, "init": T.nn.init, "x": x, "math": math})
    assert result is x
    return numbers(x)
