#!/bin/bash
# Python's safetensors reads the weights that we save, and a run goes on from a file that it wrote. SHARDMARK_PYTHON names the Python.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
python=${SHARDMARK_PYTHON:-python3}
"$python" -c "import numpy, safetensors.numpy" 2>/dev/null || { echo "skipped: $python has no numpy and safetensors"; exit 77; }
# shellcheck disable=SC2206 # lists of words
training=("$serial" bench $small --vocab 16 --data synthetic --deterministic --warmup 0 --no-verify)

ends_with 0 "${training[@]}" --steps 3 --save run --out first
cp -r run own
"$python" - <<'PY' || failed "Python reads something else"
import hashlib, json, os, struct
import numpy
from safetensors.numpy import load_file, save_file

folder = "run/update-3/"
weights, moments = load_file(folder + "model.safetensors"), load_file(folder + "optimizer.safetensors")
assert weights["wte.weight"].shape == (16, 16) and weights["h.0.attn.q.bias"].shape == (16,), weights.keys()
assert {w.dtype for w in weights.values()} == {numpy.dtype("float32")}
assert set(moments) == {name + end for name in weights for end in (".exp_avg", ".exp_avg_sq")}
assert all(numpy.isfinite(w).all() for w in weights.values()) and all((m >= 0).all() for n, m in moments.items() if n.endswith("_sq"))
assert abs(weights["ln_f.weight"] - 1).max() < 0.01 and weights["wte.weight"].std() > 0.005
# The bytes that the header names, read without the library.
raw = open(folder + "model.safetensors", "rb").read()
(length,) = struct.unpack("<Q", raw[:8])
begin, end = json.loads(raw[8 : 8 + length])["wte.weight"]["data_offsets"]
assert raw[8 + length + begin : 8 + length + end] == weights["wte.weight"].tobytes()

# The same tensors as Python's writer lays them out, with sizes and sums to match.
save_file(weights, folder + "model.safetensors")
state = json.load(open(folder + "state.json"))
state["bytes"]["model.safetensors"] = os.path.getsize(folder + "model.safetensors")
json.dump(state, open(folder + "state.json", "w"))
names = "model.safetensors", "optimizer.safetensors", "state.json"
with open(folder + "SHA256SUMS", "w") as sums:
    for name in names:
        sums.write(f"{hashlib.sha256(open(folder + name, 'rb').read()).hexdigest()}  {name}\n")
PY
! cmp -s run/update-3/model.safetensors own/update-3/model.safetensors || failed "Python's file is ours"
ends_with 0 "${training[@]}" --steps 6 --resume own --save from-own --out second
ends_with 0 "${training[@]}" --steps 6 --resume run --save from-python --out third
cmp from-own/update-6/model.safetensors from-python/update-6/model.safetensors || failed "the runs differ"
echo "Python's library reads our files and we read its"
