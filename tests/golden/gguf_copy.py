"""What the scripts of this folder share: a GGUF file written anew with something changed."""
import gguf


def copy_gguf(path, out, keys={}, tensor=None):
    """Writes `path`'s keys to `out`, those of `keys` with the value there, and of each tensor what `tensor` returns: an
    array in numpy's order. Without it, no tensors."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        element = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, keys.get(key, field.contents()), field.types[0], element)
    for t in reader.tensors if tensor else []:
        writer.add_tensor(t.name, tensor(t))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
