"""What an editor shows of a name under the pointer, asked of pyright's language server: the signature and what it does."""

import contextlib
import json
import pathlib
import subprocess
import sys

import pytest

from library import IS_GRADIRON, T

if not IS_GRADIRON:
    pytest.skip("a promise of gradiron's own", allow_module_level=True)

# Of each the beginning of its signature without spaces, and of its docstring.
SHOWN = {
    "softmax": (
        "(function)defsoftmax(input:Tensor,dim:int,dtype:_dtype|None=None,*,out:Any=None)->Tensor",
        "Apply softmax along",
    ),
    "max": ("(function)defmax(input:Tensor,*,out:Any=None)->Tensor:...defmax(input:Tensor,other:Tensor,", "Return the maximum"),
    "Tensor.softmax": ("(method)defsoftmax(self:Tensor,dim:int,", "Apply softmax along"),
    "Tensor.backward": ("(method)defbackward(self:Tensor,gradient:Any=None,", "Compute the gradients of this tensor"),
    "Tensor.to": ("(method)defto(self:Tensor,dtype:_dtype,", "Convert to a dtype or device"),
    "Tensor.shape": ("(property)shape:property", "The size of each dimension."),
    "Tensor": ("classTensor(", "A multi-dimensional array of numbers"),
    "get_num_threads": ("(function)defget_num_threads()", "Return the number of threads"),
    "linalg.svd": ("(function)defsvd(A:Tensor,full_matrices:bool=True,", "Compute the singular value decomposition"),
    "fft.fft": ("(function)deffft(input:Tensor,n:int|None=None,", "Compute the discrete Fourier transform"),
    "fft.fftfreq": ("(function)deffftfreq(n:int,d:float=1,", "Return the frequencies"),
    "special.erf": ("(function)deferf(input:Tensor,", "Compute the error function"),
    "nn.functional.relu": ("(function)defrelu(input:Tensor,inplace:bool=False)->Tensor", "Apply the rectified linear unit"),
    "nn.functional.nll_loss": ("(function)defnll_loss(input:Tensor,target:Tensor,", "Compute the negative log likelihood"),
    "nn.Linear": ("classLinear(in_features:int,out_features:int,bias:bool=True,", "Apply an affine map"),
    "optim.Adam": ("classAdam(", "Adam: adaptive steps"),
}


class Editor:
    """Speaks the language server protocol with pyright, about one file."""

    def __init__(self, folder, text):
        self.file = {"uri": (folder / "program.py").as_uri()}
        command = [sys.executable, "-m", "pyright.langserver", "--stdio"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
        self.count = 0
        root = {"uri": folder.as_uri(), "name": "program"}
        self.ask("initialize", processId=None, rootUri=folder.as_uri(), workspaceFolders=[root], capabilities={})
        self.send(method="initialized", params={})
        opened = {**self.file, "languageId": "python", "version": 1, "text": text}
        self.send(method="textDocument/didOpen", params={"textDocument": opened})

    def close(self):
        self.process.kill()
        self.process.communicate()

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def read(self):
        length = 0
        while line := self.process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        return json.loads(self.process.stdout.read(length))

    def ask(self, method, **params):
        self.count += 1
        self.send(id=self.count, method=method, params=params)
        while True:
            message = self.read()
            if "method" not in message and message["id"] == self.count:
                return message["result"]
            if "method" in message and "id" in message:  # the server wants to know its settings
                items = message["params"].get("items", ())
                self.send(id=message["id"], result=[{} for _ in items] if items else None)

    def hover(self, line, character):
        shown = self.ask("textDocument/hover", textDocument=self.file, position={"line": line, "character": character})
        return shown["contents"]["value"]


def test_a_name_shows_its_signature_and_what_it_does(tmp_path):
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(pathlib.Path(T.__file__).parent.parent)]}))
    lines = [f"torch.{name}" for name in SHOWN]
    text = "\n".join(["import gradiron as torch", *lines])
    (tmp_path / "program.py").write_text(text)
    with contextlib.closing(Editor(tmp_path, text)) as editor:
        for number, (line, (signature, doc)) in enumerate(zip(lines, SHOWN.values()), 1):
            shown = editor.hover(number, len(line) - 1)
            assert "".join(shown.split()).removeprefix("```python").startswith(signature), shown
            assert doc in shown, shown
