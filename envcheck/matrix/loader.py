"""The tables as rows, each file read when something first asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from envcheck.errors import TableError
from envcheck.matrix import schema
from envcheck.matrix.files import Raw, read_compiled, read_toml
from envcheck.paths import data_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

R = TypeVar("R", bound=schema.Row)
M = TypeVar("M")


class Matrix:
    """All compatibility tables.

    A table is read on first use and kept. Rows come in the order of their key. Instances are
    cheap, so that `dates` tells which tables one judgement really used.
    """

    def __init__(self, root: Path, *, overlay: Path | None = None, compiled: bool = False) -> None:
        """Point at tables without reading any.

        Args:
            root: folder of tables.
            overlay: folder of tables laid over them: a row with the same key replaces, others are
                added.
            compiled: whether `root` holds the compiled form that wheels carry.
        """
        self._root = root
        self._overlay = overlay
        self._compiled = compiled
        self._tables: dict[str, Raw] = {}
        self._memo: dict[str, object] = {}
        self._rows: dict[tuple[str, type[schema.Row]], tuple[schema.Row, ...]] = {}
        self._found: dict[tuple[Any, ...], tuple[schema.Row, ...]] = {}
        self._indexes: dict[
            tuple[type[schema.Row], tuple[str, ...]], dict[tuple[object, ...], list[Raw]]
        ] = {}

    @classmethod
    def shipped(cls, overlay: Path | None = None) -> Matrix:
        """Open the tables that come with envcheck.

        Args:
            overlay: folder of the user's own tables.
        """
        compiled = data_dir("tables")
        if (compiled / "cuda.json").is_file():
            return cls(compiled, overlay=overlay, compiled=True)
        return cls(data_dir("matrices"), overlay=overlay)

    @classmethod
    def from_dir(cls, path: Path, overlay: Path | None = None) -> Matrix:
        """Open a folder of TOML tables; a table that is not there has no rows.

        Raises:
            TableError: there is no such folder.
        """
        if not path.is_dir():
            msg = f"{path}: no such folder of tables"
            raise TableError(msg)
        return cls(path, overlay=overlay)

    # -- whole tables ------------------------------------------------------------------------------

    def table(self, name: str) -> Mapping[str, Any]:
        """Plain content of a table, for tables whose rows have no type here.

        Args:
            name: file name without suffix, `cuda` or `frameworks/torch`.

        Raises:
            TableError: the table is damaged; the message lists every problem found in it.
        """
        return self._table(name)

    def names(self) -> tuple[str, ...]:
        """Names of all tables that are there, read or not."""
        suffix = ".json" if self._compiled else ".toml"
        folders = [(self._root, suffix)]
        if self._overlay is not None:
            folders.append((self._overlay, ".toml"))
        found = {
            path.relative_to(folder).with_suffix("").as_posix()
            for folder, ending in folders
            for path in folder.rglob(f"*{ending}")
        }
        return tuple(sorted(found))

    def load_all(self) -> None:
        """Read every table.

        Raises:
            TableError: one or more are damaged; the message lists every problem in every file.
        """
        problems = []
        for name in self.names():
            try:
                self._table(name)
            except TableError as error:
                problems.append(str(error))
        if problems:
            raise TableError("\n".join(problems))

    def dates(self) -> dict[str, str]:
        """Date of each table read so far."""
        return {
            name: table["date"] for name, table in sorted(self._tables.items()) if "date" in table
        }

    def date(self, name: str) -> str | None:
        """Date of one table, reading it if need be."""
        found = self._table(name).get("date")
        return cast("str | None", found)

    def source(self, id: str) -> schema.TableSource | None:
        """A source by its id, among the tables read so far."""
        for table in self._tables.values():
            for found in table.get("source", ()):
                if found["id"] == id:
                    return schema.TableSource(**found)
        return None

    # -- rows --------------------------------------------------------------------------------------

    def rows(self, kind: type[R], table: str | None = None) -> tuple[R, ...]:
        """All rows of one type.

        Args:
            kind: the row type.
            table: where to look, for a type that several tables share.
        """
        name = table or kind.table
        key = (name, kind)
        if key not in self._rows:
            raw = self._section(name, kind.section)
            self._rows[key] = tuple(_build(kind, values) for values in raw)
        return cast("tuple[R, ...]", self._rows[key])

    def find(self, kind: type[R], **fields: object) -> tuple[R, ...]:
        """Rows of one type whose fields have the given values; builds those only.

        Args:
            kind: the row type.
            **fields: field names and the values asked for.
        """
        key = (kind, *fields.items())
        if key not in self._found:
            raw = self._index(kind, tuple(fields)).get(tuple(fields.values()), ())
            self._found[key] = tuple(_build(kind, values) for values in raw)
        return cast("tuple[R, ...]", self._found[key])

    def _index(
        self, kind: type[schema.Row], names: tuple[str, ...]
    ) -> dict[tuple[object, ...], list[Raw]]:
        """Unbuilt rows by the values of some fields: rules ask for one after another."""
        key = (kind, names)
        if key not in self._indexes:
            index = self._indexes[key] = {}
            for values in self._section(kind.table, kind.section):
                index.setdefault(tuple(map(values.get, names)), []).append(values)
        return self._indexes[key]

    def values(self, kind: type[schema.Row], field: str) -> tuple[Any, ...]:
        """One field of all rows of a type, in their order, without building the rows."""
        return tuple(values.get(field) for values in self._section(kind.table, kind.section))

    def memo(self, name: str, make: Callable[[], M]) -> M:
        """A value derived from the tables, made once.

        Args:
            name: a name of its own for each kind of value.
            make: computes it.
        """
        if name not in self._memo:
            self._memo[name] = make()
        return cast("M", self._memo[name])

    def framework(self, name: str) -> schema.Framework | None:
        """Head of a framework's table, `torch`."""
        found = self.rows(schema.Framework, f"frameworks/{name}")
        return found[0] if found else None

    @property
    def toolkits(self) -> tuple[schema.CudaToolkit, ...]:
        """CUDA toolkit releases."""
        return self.rows(schema.CudaToolkit)

    @property
    def minor_floors(self) -> tuple[schema.MinorFloor, ...]:
        """Driver floors of CUDA majors."""
        return self.rows(schema.MinorFloor)

    @property
    def forward_compat(self) -> tuple[schema.ForwardCompat, ...]:
        """Driver branches that a compat package lifts."""
        return self.rows(schema.ForwardCompat)

    @property
    def ptxas(self) -> tuple[schema.PtxasTargets, ...]:
        """Targets of the assembler in each toolkit."""
        return self.rows(schema.PtxasTargets)

    @property
    def host_compilers(self) -> tuple[schema.HostCompiler, ...]:
        """Host compilers that nvcc accepts."""
        return self.rows(schema.HostCompiler)

    @property
    def branches(self) -> tuple[schema.DriverBranch, ...]:
        """Driver branches."""
        return self.rows(schema.DriverBranch)

    @property
    def capabilities(self) -> tuple[schema.Capability, ...]:
        """Compute capabilities."""
        return self.rows(schema.Capability)

    @property
    def products(self) -> tuple[schema.GpuProduct, ...]:
        """GPUs by the names they are sold under."""
        return self.rows(schema.GpuProduct)

    @property
    def pci_gpus(self) -> tuple[schema.PciGpu, ...]:
        """GPUs by PCI device id."""
        return self.rows(schema.PciGpu)

    @property
    def nvswitches(self) -> tuple[schema.NvSwitch, ...]:
        """NVSwitches by PCI device id."""
        return self.rows(schema.NvSwitch)

    @property
    def torch_builds(self) -> tuple[schema.TorchBuild, ...]:
        """Published torch builds."""
        return self.rows(schema.TorchBuild)

    @property
    def companions(self) -> tuple[schema.Companion, ...]:
        """The torchvision and torchaudio of each torch."""
        return self.rows(schema.Companion)

    @property
    def cudnn_support(self) -> tuple[schema.CudnnSupport, ...]:
        """Support matrices of cuDNN."""
        return self.rows(schema.CudnnSupport)

    @property
    def cudnn_releases(self) -> tuple[schema.CudnnRelease, ...]:
        """Releases of cuDNN."""
        return self.rows(schema.CudnnRelease)

    @property
    def cudnn_known_bad(self) -> tuple[schema.CudnnKnownBad, ...]:
        """Combinations with cuDNN that fail."""
        return self.rows(schema.CudnnKnownBad)

    @property
    def nccl_releases(self) -> tuple[schema.NcclRelease, ...]:
        """NCCL releases."""
        return self.rows(schema.NcclRelease)

    @property
    def nccl_targets(self) -> tuple[schema.NcclTargets, ...]:
        """Default targets of NCCL builds."""
        return self.rows(schema.NcclTargets)

    @property
    def nccl_known_bad(self) -> tuple[schema.NcclKnownBad, ...]:
        """Combinations with NCCL that fail."""
        return self.rows(schema.NcclKnownBad)

    @property
    def distros(self) -> tuple[schema.Distro, ...]:
        """Linux distribution releases."""
        return self.rows(schema.Distro)

    @property
    def distro_packages(self) -> tuple[schema.DistroPackage, ...]:
        """Package names per distribution family and purpose."""
        return self.rows(schema.DistroPackage)

    @property
    def xids(self) -> tuple[schema.Xid, ...]:
        """Error numbers of the kernel module."""
        return self.rows(schema.Xid)

    @property
    def cuda_images(self) -> tuple[schema.CudaImage, ...]:
        """CUDA base images."""
        return self.rows(schema.CudaImage)

    @property
    def toolkit_releases(self) -> tuple[schema.ToolkitRelease, ...]:
        """Container toolkit releases."""
        return self.rows(schema.ToolkitRelease)

    @property
    def tensorflow_releases(self) -> tuple[schema.TensorflowRelease, ...]:
        """Releases of tensorflow."""
        return self.rows(schema.TensorflowRelease)

    @property
    def tensorflow_tested(self) -> tuple[schema.TensorflowTested, ...]:
        """Configurations that tensorflow was tested in."""
        return self.rows(schema.TensorflowTested)

    @property
    def jax_releases(self) -> tuple[schema.JaxRelease, ...]:
        """Releases of jax."""
        return self.rows(schema.JaxRelease)

    @property
    def jax_plugins(self) -> tuple[schema.JaxPlugin, ...]:
        """CUDA plugins of jax."""
        return self.rows(schema.JaxPlugin)

    @property
    def library_requirements(self) -> tuple[schema.LibraryRequirement, ...]:
        """What libraries ask of frameworks."""
        return self.rows(schema.LibraryRequirement)

    @property
    def symptoms(self) -> tuple[schema.SymptomRow, ...]:
        """Messages of drivers, libraries and frameworks."""
        return self.rows(schema.SymptomRow)

    # -- reading -----------------------------------------------------------------------------------

    def _section(self, table: str, section: str) -> list[Raw]:
        found = self._table(table).get(section, [])
        return [found] if isinstance(found, dict) else found

    def _table(self, name: str) -> Raw:
        if name not in self._tables:
            self._tables[name] = self._read(name)
        return self._tables[name]

    def _read(self, name: str) -> Raw:
        if self._compiled:
            table = read_compiled(self._root / f"{name}.json")
        else:
            table = read_toml(self._root, name)
        if self._overlay is None:
            return table
        from envcheck.matrix.validate import merged

        return merged(table, read_toml(self._overlay, name))


def _build(kind: type[R], values: Raw) -> R:
    try:
        made = {
            name: tuple(value) if value.__class__ is list else value
            for name, value in values.items()
        }
        return cast("R", cast("Any", kind)(**made))
    except (TypeError, AttributeError) as error:
        # Only a compiled table gets here unchecked, and only when it was damaged since.
        msg = f"{kind.table}: [[{kind.section}]]: {error}"
        raise TableError(msg) from error
