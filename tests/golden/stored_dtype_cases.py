"""What is asked of the dtypes that are only stored: calls on `x` and `y`, of dtype `t`."""

import io
import math
import warnings

DTYPES = "uint16 uint32 uint64 float8_e4m3fn float8_e5m2 complex32".split()

CASES = """
T.tensor([1,2],dtype=t)
T.zeros(2,dtype=t)
T.ones(2,dtype=t)
T.full((2,),3,dtype=t)
T.empty(2,dtype=t).shape
T.arange(3,dtype=t)
T.linspace(0,2,3,dtype=t)
T.eye(2,dtype=t)
T.zeros_like(x)
T.ones_like(x)
T.full_like(x,2)
x.new_zeros(2)
x.new_tensor([1,2])
x.clone()
x.contiguous()
x.fill_(2)
x.zero_()
x.copy_(T.tensor([1,2,3,4]))
x.float()
x.double()
x.long()
x.int()
x.short()
x.to(T.uint8)
x.bool()
x.half()
x.bfloat16()
x.to(T.complex64)
x.to(T.uint16)
x.to(T.uint32)
x.to(T.uint64)
x.to(T.float8_e4m3fn)
x.to(T.float8_e5m2)
x.to(T.complex32)
x[0].item()
x.tolist()
x[1]
x[1:3]
x[T.tensor([0,2])]
x[T.tensor([True,False,True,False])]
x.__setitem__(0,2)
x.__setitem__(T.tensor([0,2]),2)
x.__setitem__(T.tensor([True,False,True,False]),2)
x.__setitem__(slice(0,2),y[:2])
x.index_select(0,T.tensor([0,2]))
x.gather(0,T.tensor([0,2]))
x.scatter(0,T.tensor([0,2]),y)
x.scatter(0,T.tensor([0,2]),2)
x.scatter_add(0,T.tensor([0,2]),y)
x.index_add(0,T.tensor([0,2]),y[:2])
x.index_copy(0,T.tensor([0,2]),y[:2])
x.index_fill(0,T.tensor([0,2]),2)
x.index_put((T.tensor([0,2]),),y[:2])
x.index_put((T.tensor([0,2]),),y[:2],accumulate=True)
x.take(T.tensor([0,2]))
x.put(T.tensor([0,2]),y[:2])
x.masked_fill(T.tensor([True,False,True,False]),2)
x.masked_select(T.tensor([True,False,True,False]))
x.masked_scatter(T.tensor([True,False,True,False]),y)
T.where(T.tensor([True,False,True,False]),x,y)
T.cat([x,y])
T.stack([x,y])
x.reshape(2,2)
x.view(2,2).t()
x.view(2,2).t().contiguous()
x.flip(0)
x.roll(1)
x.repeat(2)
x.expand(2,4)
x.unfold(0,2,1)
x.view(T.uint8)
x.view(T.int16)
x.view(2,2).tril()
x.view(2,2).diagonal()
T.diag(x)
x.repeat_interleave(2)
x.squeeze()
T.tile(x,(2,))
T.nn.functional.pad(x,(1,1))
T.nn.functional.embedding(T.tensor([0,1]),x.view(2,2))
T.arange(8)[x]
repr(x)
str(x.view(2,2))
repr(x[0])
repr(x[:0])
x==y
x!=y
x<y
x<=y
x>y
x>=y
x==1
x<2
x.eq(T.tensor([3,1,2,1]))
T.equal(x,y)
T.allclose(x,y)
T.isclose(x,y)
T.isnan(x)
T.isinf(x)
T.isfinite(x)
x+y
x-y
x*y
x/y
x//y
x%y
x**y
x+1
x*2
x+1.5
x/2
x//2
x%2
-x
x.abs()
x.sign()
x.sgn()
~x
x&y
x|y
x^y
x<<1
x>>1
T.logical_and(x,y)
T.logical_not(x)
T.logical_or(x,y)
T.logical_xor(x,y)
x.add_(1)
x.mul_(2)
x.add_(y)
x.addcmul(x,y)
x.lerp(y,0.5)
x.sum()
x.sum(0,dtype=T.int64)
x.mean()
x.prod()
x.min()
x.max()
x.amin()
x.amax()
x.argmin()
x.argmax()
x.any()
x.all()
x.cumsum(0)
x.cumprod(0)
x.norm()
x.std()
x.var()
x.nansum()
x.logsumexp(0)
x.count_nonzero()
x.nonzero()
x.argsort()
T.unique(x)
T.unique_consecutive(x)
T.bincount(x)
T.histc(x)
T.searchsorted(x.sort()[0],y)
T.bucketize(T.tensor([1,2]),x)
T.isin(x,y)
T.maximum(x,y)
T.minimum(x,y)
T.fmax(x,y)
x.clamp(1,2)
x.clamp(min=y)
x.exp()
x.sqrt()
x.sin()
x.sigmoid()
x.relu()
T.softmax(x,0)
x.round()
x.floor()
x.trunc()
x.reciprocal()
x.pow(2)
x.square()
T.remainder(x,2)
T.fmod(x,2)
T.div(x,y,rounding_mode="trunc")
T.div(x,y,rounding_mode="floor")
T.gcd(x,y)
T.dot(x,y)
x.view(2,2)@y.view(2,2)
x.view(2,2).mv(y[:2])
T.bmm(x.view(1,2,2),y.view(1,2,2))
T.outer(x,y)
x.is_floating_point()
x.is_complex()
x.is_signed()
x.element_size()
x.type()
x.real
x.imag
T.view_as_real(x)
x.conj()
x.conj().resolve_conj()
x.neg()
x.angle()
T.resolve_neg(x)
x.requires_grad_()
x.new_empty(0)
x.untyped_storage().nbytes()
T.zeros(2,dtype=t,requires_grad=True)
T.promote_types(t,T.uint8)
T.promote_types(t,T.int8)
T.promote_types(t,T.int64)
T.promote_types(t,T.bool)
T.promote_types(t,T.float32)
T.promote_types(t,T.float16)
T.promote_types(t,T.bfloat16)
T.promote_types(t,T.complex64)
T.promote_types(t,T.complex32)
T.promote_types(t,T.uint16)
T.promote_types(t,T.uint32)
T.promote_types(t,T.uint64)
T.promote_types(t,T.float8_e5m2)
T.can_cast(t,T.int32)
T.can_cast(T.int64,t)
T.can_cast(t,T.uint8)
T.can_cast(t,T.float32)
T.can_cast(T.float32,t)
T.result_type(x,1)
T.result_type(x,1.5)
T.result_type(x,T.tensor([1]))
T.result_type(x,T.tensor(1))
x.where(T.tensor([True,False,True,False]),0)
T.combinations(x)
T.cartesian_prod(x,y)
T.diff(x)
T.tensor(x)
T.as_tensor([1,2],dtype=t)
x.nan_to_num()
x.type(T.float32)
T.nn.functional.mse_loss(x,y)
T.nn.functional.linear(x.view(2,2),y.view(2,2))
T.nn.functional.relu(x)
T.bitwise_and(x,1)
bool(x[0])
int(x[0])
float(x[0])
complex(x[0])
len(x)
T.from_dlpack(x)
x.data.dtype
x.is_contiguous()
t.is_floating_point
t.is_signed
t.itemsize
t.is_complex
t.to_real()
t.to_complex()
T.tensor([-1],dtype=t)
T.tensor([70000],dtype=t)
T.tensor([float("inf")],dtype=t)
T.full((1,),-1,dtype=t)
x.fill_(-1)
x.fill_(1e9)
x.mul(y.float())
T.tensor([300.,-1.,1.7,1e9]).to(t)
T.tensor([-1,70000,2**32+5,2**62]).to(t)
x.dist(y)
T.cdist(x.view(2,2),y.view(2,2))
T.logaddexp(x,y)
T.heaviside(x,y)
T.copysign(x,y)
T.signbit(x)
T.ldexp(x,y)
T.nextafter(x,y)
T.atan2(x,y)
T.hypot(x,y)
x.masked_fill_(T.tensor([True,False,True,False]),2)
x.index_reduce(0,T.tensor([0,2]),y[:2],'amax')
x.scatter_reduce(0,T.tensor([0,2]),y,'sum')
x.view(2,2).trace()
x.view(2,2).rot90()
x.swapaxes(0,0)
T.concat([x,T.tensor([1])])
T.cat([x,T.tensor([1.5])])
T.cat([x,T.tensor([1],dtype=T.uint8)])
x+T.tensor([1])
x+T.tensor([1],dtype=T.uint8)
x+T.tensor([1],dtype=T.int8)
x+T.tensor([1.5])
x+T.tensor(1)
x==T.tensor([1])
x==T.tensor([1.])
x<T.tensor([2.])
x<T.tensor([2],dtype=T.uint8)
T.tensor([1.,2.,3.,4.]).copy_(x)
T.tensor([1,2,3,4])+x
T.zeros(4)+x
T.zeros(4).add_(x)
T.zeros(4).mul_(x)
T.arange(4).add_(x)
T.add(x,y,out=T.empty(4,dtype=t))
T.zeros(2,dtype=t)[0].item()
T.isreal(x)
T.is_nonzero(x[0])
x.logical_not()
T.broadcast_to(x,(2,4))
T.atleast_2d(x)
T.tensor([x[0].item()],dtype=t)
x.to(T.float32,copy=True)
x.bitwise_not()
T.deg2rad(x)
T.true_divide(x,y)
T.rsub(x,1)
1-x
2/x
2**x
5%x
5//x
1<<x
1&x
x.sort()[0]
x.sort(descending=True)[1]
x.new_full((2,), 2)
x.numpy().tolist()
T.stack(list(x))
T.cat(x.split(2))
T.nn.Parameter(x).requires_grad
x.double().to(t)
(x.double() * 1.3).to(t)
(x.float() * -1.3).to(t)
x.to(T.int8)
T.unique(x, return_counts=True)[1]
x.view(2, 2)[:, 1]
x[T.tensor([2, 0]), None]
x.view(2, 2).t().reshape(-1)
x.view(t)
x.eq(y).sum()
T.finfo(t).max
T.finfo(t).tiny
T.iinfo(t).max
T.tensor([True, False]).to(t)
T.tensor([1.5, 2.5, 3e38, -3e38, float("inf"), float("nan"), 2.0**-9, 2.0**-17]).to(t)
T.tensor([1e19, 1.9e19, 1e10, -1e10, 5e9, 65536.0, 4294967295.0, 3.5], dtype=T.float64).to(t)
T.arange(-3, 300, 37).to(t)
T.arange(256, dtype=T.uint8).view(t)
T.arange(256, dtype=T.uint8).view(t).float().nan_to_num(7)
T.arange(256, dtype=T.uint8).view(t).to(T.float16).nan_to_num(7)
x == -1
x * -1
x & -1
x * 70000
x.clamp(-1, 5)
x.to(T.complex64).to(t)
x.neg() + 0
T.promote_types(T.int32, t)
T.promote_types(t, t)
x.T
x.element_size() * x.numel()
x.requires_grad
x.masked_fill(x == y, 0)
""".strip().splitlines()


def operands(name, T):
    """Two vectors of four elements, the greatest number of an unsigned dtype among them."""
    if name.startswith("uint"):
        x = [3, 1, 2 ** int(name[4:]) - 1, 1]
    else:
        x = [3 + 1j, 1, 2 - 1j, -1] if name == "complex32" else [3.0, 1.0, 0.4375, -1.0]
    dtype = getattr(T, name)
    return T.tensor(x, dtype=dtype), T.tensor([2, 1, 3, 1], dtype=dtype)


def plain(value):
    """A number as JSON has it."""
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    return value if not isinstance(value, float) or math.isfinite(value) else repr(value)


def told(result, T):
    """A result in plain words."""
    if isinstance(result, T.Tensor):
        values = [plain(value) for value in result.detach().reshape(-1).tolist()]
        return [str(result.dtype).rpartition(".")[2], list(result.shape), values]
    return plain(result) if isinstance(result, (bool, int, float, complex)) else repr(result)


def answer(case, name, T, operands=operands):
    """What a call gives: its result, or the kind of its error and the first line of its message."""
    x, y = operands(name, T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return told(eval(case, {"T": T, "x": x, "y": y, "t": x.dtype}), T)
        except Exception as error:
            return {"error": type(error).__name__, "message": str(error).partition("\n")[0]}


def file(name, T):
    """A checkpoint with a tensor, a part of it and a parameter where there is one."""
    x, _ = operands(name, T)
    saved = {"x": x, "part": x[1:3]}
    if x.is_floating_point() or x.is_complex():
        saved["parameter"] = T.nn.Parameter(x.clone())
    out = io.BytesIO()
    T.save(saved, out)
    return out.getvalue()
