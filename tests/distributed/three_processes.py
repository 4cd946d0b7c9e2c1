"""What three processes over gloo find, and two of them among themselves: {(size, check): answer} of each process.

Each check compares with one process that has the whole batch, inside the same process, and answers "" if they agree.
"""

import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import naysay as ns
from naysay import catalog
from naysay._slots import PER_SLOT
from naysay.catalog import world
from naysay.distributed import WholeBatch, in_shares, observe_all, update_on_first
from naysay.errors import NaysayError
from naysay.losses import eliminate, gather_rows, in_batch, in_batch_hinge, sup_con

sys.path.insert(0, str(Path(__file__).parent.parent))
from catalog_programs import run

SECONDS = 240  # for all processes to start, meet and end, on a busy machine
# The first method of each pool that is drawn from as it is, and of each sampler.
METHODS = [
    *{
        tuple(method.parts.split("(")[: 2 if method.question == "where" else 1]): method.name
        for question in ("which", "where")
        for method in reversed(catalog.methods(question))
        if not method.like
    }.values()
]
AMONG_THREE = ("uniform", "corruption", "cached", "learned", "in-batch", "memory-queue", "mixed-sources", "judged")
SHARES = {1: (), 2: (0.3,), 3: (0.5, 0.5)}  # where a batch is cut; of three processes the second has no rows
N, ITEMS, WIDTH = 40, 90, 6


def own_rows(place, rows):
    rank, size, _ = place
    ends = [0, *(int(share * rows) for share in SHARES[size]), rows]
    return slice(ends[rank], ends[rank + 1])


def part_of(query, rows):
    arrays = {name: getattr(query, name) for name in ("anchors", "positives", "vectors", "times")}
    return ns.Query(step=query.step, **{name: None if one is None else one[rows] for name, one in arrays.items()})


def difference(one, other):
    """The first thing in which two states, negatives or arrays differ, or ""."""
    if isinstance(one, ns.Negatives):
        one, other = ({name: getattr(part, name) for name in PER_SLOT} for part in (one, other))
    if not isinstance(one, dict):
        one, other = {"": one}, {"": other}
    if one.keys() != other.keys():
        return f"{sorted(one)} and {sorted(other)}"
    for name, value in one.items():
        pair = [part.numpy() if isinstance(part, torch.Tensor) else np.asarray(part) for part in (value, other[name])]
        if pair[0].dtype != pair[1].dtype or not np.array_equal(*pair):
            return f"{name}: {pair[0]!r} and {pair[1]!r}"
    return ""


def refusal(call, *arguments, **named):
    """The parameter that an error names, or the error if it names none; "" without an error."""
    try:
        call(*arguments, **named)
    except NaysayError as error:
        return error.parameter or str(error)
    except RuntimeError as error:
        return str(error)
    return ""


# ---- samplers -------------------------------------------------------------------------------------------


def draws_as_one(place, name):
    """Two steps of a sampler of the catalogue, with all that it learns, against one process."""
    method = catalog.find(name)[0]
    samplers = [run(method)["sampler"] for _ in range(2)]  # two of the same, which share no model
    alone, query, together = samplers[0], getattr(world, method.query), WholeBatch(samplers[1], place[2])
    rows = own_rows(place, len(query))
    own, zeros = part_of(query, rows), np.zeros(len(query))
    wrong = ""  # not returned at once: the other processes wait for the rest
    for step, k in enumerate((2, 1.5)):
        wanted = alone.sample(query, k, rng=ns.rng_for(0, step))
        found = together.sample(own, k, rng=ns.rng_for(0, step))
        arrays = {name: getattr(wanted, name) for name in PER_SLOT}
        expected = ns.Negatives(**{name: None if one is None else one[rows] for name, one in arrays.items()})
        wrong = wrong or difference(found, expected) or difference(found.dropped, wanted.dropped)
        if hasattr(alone, "observe"):
            said = refusal(alone.observe, query, wanted, positive_scores=zeros)
            wrong = wrong or difference(refusal(together.observe, own, found, positive_scores=zeros[rows]), said)
    return wrong or (difference(together.state(), alone.state()) if hasattr(alone, "state") else "")


def tensors_and_scores_in_shares(place):
    """Hard negatives in torch, each row scored in one process only; k for each row."""
    known = ns.Positives.from_pairs(np.arange(N), np.arange(N), N, ITEMS)
    table = torch.from_numpy(np.random.default_rng(1).standard_normal((N, ITEMS)))
    seen = []

    def score(anchors, ids):
        seen.append(len(ids))
        return table[anchors[:, None], ids]

    query = ns.Query(torch.arange(N), positives=torch.arange(N), step=3)
    k, rows = torch.arange(N) % 4, own_rows(place, N)
    pool = ns.pools.Everything(known)
    wanted = ns.samplers.Dynamic(pool, score, 12).sample(query, k, rng=ns.rng_for(5))
    seen.clear()
    sampler = WholeBatch(ns.samplers.Dynamic(pool, in_shares(score, place[2]), 12), place[2])
    found = sampler.sample(part_of(query, rows), k[rows], rng=ns.rng_for(5))
    if seen != [N * (place[0] + 1) // place[1] - N * place[0] // place[1]]:
        return f"scored {seen} rows"
    return difference(found.ids, wanted.ids[rows]) or difference(found.scores, wanted.scores[rows])


def few_rows_in_shares(place):
    """Fewer rows than processes: some score none."""
    score = in_shares(lambda anchors, ids: ids * 0.5, place[2])
    return difference(score(np.array([7]), np.array([[1, 2]])), np.array([[0.5, 1.0]]))


def a_judge_learns_as_one(place):
    """`Judged` teaches its detector the candidates before the policy, which it knows by the ids of the whole batch."""
    known = ns.Positives.from_pairs(np.arange(N), np.arange(N), N, ITEMS)
    table = np.random.default_rng(1).uniform(-1, 1, (N, ITEMS))
    query, samplers = ns.Query(np.arange(N)), []
    for _ in range(2):
        hard = ns.samplers.Dynamic(ns.pools.Everything(known), lambda anchors, ids: table[anchors[:, None], ids], 12)
        samplers.append(ns.samplers.Judged(hard, ns.detectors.LearnedQuantile(N, alpha=0.4, rate=0.3)))
    alone, together, rows = samplers[0], WholeBatch(samplers[1], place[2]), own_rows(place, N)
    wrong = ""
    for step in range(4):
        wanted = alone.sample(query, 3, rng=ns.rng_for(0, step))
        found = together.sample(part_of(query, rows), 3, rng=ns.rng_for(0, step))
        wrong = wrong or difference(found.ids, wanted.ids[rows])
        alone.observe(query, wanted)
        together.observe(part_of(query, rows), found)
    return wrong or difference(together.state(), alone.state()) or ("" if wanted.dropped else "nothing was suspected")


# ---- parts that learn -----------------------------------------------------------------------------------


def step_of(step, kind=torch.float32):
    rng = np.random.default_rng(step)
    anchors = rng.integers(0, N, 12)
    query = ns.Query(torch.from_numpy(anchors), positives=torch.from_numpy(rng.integers(0, ITEMS, 12)), step=step)
    ids = torch.from_numpy(rng.integers(0, ITEMS, (12, 5)))
    negatives = ns.Negatives(ids, scores=torch.from_numpy(rng.uniform(-1, 1, (12, 5))))
    return query, negatives, torch.from_numpy(rng.standard_normal((12, WIDTH))).to(kind)


def part_of_step(place, query, negatives, vectors):
    rows = own_rows(place, len(query))
    return part_of(query, rows), ns.Negatives(negatives.ids[rows], scores=negatives.scores[rows]), vectors[rows]


def learners():
    return {
        "Memory": ns.pools.Memory(30),
        "Memory, bfloat16": ns.pools.Memory(30),
        "LearnedQuantile": ns.detectors.LearnedQuantile(N, alpha=0.2),
    }


def learns_as_one(place, name):
    alone, together = learners()[name], learners()[name]
    for step in range(4):
        query, negatives, vectors = step_of(step, torch.bfloat16 if "bfloat16" in name else torch.float32)
        given = {} if name == "LearnedQuantile" else {"vectors": vectors}
        alone.observe(query, negatives, **given)
        own, drawn, mine = part_of_step(place, query, negatives, vectors)
        given = {} if name == "LearnedQuantile" else {"vectors": mine}
        observe_all(together, own, drawn if given == {} else None, group=place[2], **given)
    if name == "LearnedQuantile":
        return difference(together.state(), alone.state())
    query, rows = step_of(9)[0], own_rows(place, 12)
    drawn = [
        sampler.sample(part_of(query, chosen), 4, rng=ns.rng_for(1))
        for sampler, chosen in (
            (ns.samplers.Static(alone), slice(None)),
            (WholeBatch(ns.samplers.Static(together), place[2]), rows),
        )
    ]
    if drawn[0].vectors.dtype != drawn[1].vectors.dtype:
        return f"vectors of {drawn[1].vectors.dtype}"
    found = difference(drawn[1].vectors.float(), drawn[0].vectors[rows].float())
    return found or difference(drawn[1].ids, drawn[0].ids[rows]) or difference(together.state(), alone.state())


def pushes_as_one(place):
    """`Memory.push` with rows that `gather_rows` gathered."""
    alone, together = ns.pools.Memory(9), ns.pools.Memory(9)
    ids, owners, vectors = torch.arange(14), torch.arange(14) % 5, torch.arange(28.0).reshape(14, 2)
    alone.push(ids, owners, vectors)
    rows = own_rows(place, 14)
    together.push(*(gather_rows(part[rows], place[2]).rows for part in (ids, owners, vectors)))
    return difference(together.state(), alone.state())


def online_as_one(place):
    alone, together = ns.quantity.Online(steps=1000), ns.quantity.Online(steps=1000)
    for step in range(0, 601, 50):
        for split in ("validation", "training"):
            rng = ns.rng_for(1, step, rank=int(split == "training"))
            positive = torch.from_numpy(2 * (1 - np.exp(-step / 200)) + rng.standard_normal(300))
            negatives = torch.from_numpy(rng.standard_normal((300, 4)))
            rows = own_rows(place, 300)
            alone.record(step, positive, negatives, split)
            gathered = [gather_rows(part[rows], place[2]).rows for part in (positive, negatives)]
            together.record(step, *gathered, split)
    return difference(together.state(), alone.state())


def features(n, width=WIDTH):
    rng = np.random.default_rng(0)
    return (rng.standard_normal((7, width))[rng.integers(0, 7, n)] + 0.3 * rng.standard_normal((n, width))).astype("f4")


def clusters_as_one(place, n=500):
    """`Incremental.update` and `SoftClusters.update`: the samples in any order over the processes, some twice."""
    rows = features(n)
    alone, together = (ns.detectors.Incremental(n, (4, 9), accept=0.6) for _ in range(2))
    order = np.random.default_rng(2).permutation(n)
    mine = np.concatenate([order[own_rows(place, n)], order[:3]])
    for progress in (0.3, 0.7):
        alone.update(rows, progress)
        update_on_first(
            together,
            mine,
            torch.from_numpy(rows[mine]),
            lambda whole, progress=progress: together.update(whole, progress),
            group=place[2],
        )
    soft, soft_together = (ns.detectors.SoftClusters(5) for _ in range(2))
    soft.update(rows, rng=ns.rng_for(3))
    update_on_first(
        soft_together, mine, rows[mine], lambda whole: soft_together.update(whole, rng=ns.rng_for(3)), group=place[2]
    )
    return difference(together.state(), alone.state()) or difference(soft_together.state(), soft.state())


def held_while_updating(place):
    """The most memory that a process needs for an update, beside its own rows, as a share of all rows."""
    n, width = 60_000, 128
    detector = ns.detectors.Incremental(n, 2, accept=1.0, iterations=1)
    mine = np.arange(n)[place[0] :: place[1]]
    rows = np.random.default_rng(0).standard_normal((len(mine), width), np.float32)
    before = memory("VmRSS", reset=True)
    update_on_first(detector, mine, rows, lambda whole: detector.update(whole, 1.0), group=place[2])
    return (memory("VmHWM") - before) / (4 * n * width)


def memory(entry, *, reset=False):
    if reset:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is from now on
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[entry].split()[0]) * 1024


# ---- losses ---------------------------------------------------------------------------------------------


def pairs(z, keys, gather):
    rows, first = gather(keys)
    return in_batch(z, rows, partner=first + torch.arange(len(z)), temperature=0.5)


def hinge(z, keys, gather):
    rows, first = gather(keys)
    return in_batch_hinge(z, rows, partner=first + torch.arange(len(z)), margin=0.3)


def labelled(z, keys, gather):
    rows, first = gather(z + keys)
    return sup_con(rows, torch.arange(len(rows)) % 3)[first : first + len(z)]


def eliminated(z, keys, gather):
    rows, first = gather(z * keys)
    numbers = torch.arange(len(rows))
    whole = eliminate(rows, numbers ^ 1, (numbers % 4)[None], temperature=0.4)
    return whole[first : first + len(z)]


def loss_as_one(place, loss):
    whole = [torch.from_numpy(np.random.default_rng(seed).standard_normal((N, WIDTH))) for seed in (0, 1)]
    rows, answers = own_rows(place, N), []
    for part, gather in (
        (slice(None), lambda given: (given, 0)),
        (rows, lambda given: gather_rows(given, place[2])),
    ):
        leaves = [one[part].clone().requires_grad_() for one in whole]
        values = loss(*leaves, gather)
        (values * values.detach().cos()).sum().backward()
        answers.append([values.detach(), *(leaf.grad for leaf in leaves)])
    worst = max(
        float((found - wanted[rows]).abs().max()) if len(found) else 0.0 for wanted, found in zip(*answers, strict=True)
    )
    size = max(float(wanted.abs().max()) for wanted in answers[0])
    return "" if worst < 1e-12 and size > 1e-2 else f"{worst:g} of {size:g}"


LOSSES = {"in_batch": pairs, "in_batch_hinge": hinge, "sup_con": labelled, "eliminate": eliminated}


def model_as_one(place):
    """A DistributedDataParallel model has the gradient of the mean over the whole batch."""
    whole = [torch.from_numpy(np.random.default_rng(seed).standard_normal((N, WIDTH))) for seed in (0, 1)]
    weight = torch.from_numpy(np.random.default_rng(2).standard_normal((3, WIDTH))).requires_grad_()
    pairs(*(part @ weight.T for part in whole), lambda given: (given, 0)).mean().backward()
    layer = torch.nn.Linear(WIDTH, 3, bias=False).double()
    with torch.no_grad():
        layer.weight.copy_(weight)
    model = torch.nn.parallel.DistributedDataParallel(layer, process_group=place[2])
    rows = own_rows(place, N)
    made = model(torch.cat([part[rows] for part in whole]))
    half = len(made) // 2
    losses = pairs(made[:half], made[half:], lambda given: gather_rows(given, place[2]))
    (losses.sum() * place[1] / N).backward()
    apart = float((layer.weight.grad - weight.grad).abs().max())
    return "" if apart < 1e-12 else f"{apart:g}"


def gathers(place):
    """`gather_rows` of ids, without gradients, of no rows, and what raises in all processes."""
    rank, size, group = place
    last = rank == size - 1
    ids = gather_rows(torch.arange(2 + rank) + 10 * rank, group)
    with torch.no_grad():
        plain = gather_rows(torch.ones(2, 3, requires_grad=True), group).rows.requires_grad
    none = gather_rows(torch.empty(0, 3), group).rows.shape
    raised = [
        refusal(gather_rows, torch.ones(2, 3 + last), group),
        refusal(gather_rows, torch.ones(2, 3) if last else torch.ones(2), group),
        refusal(gather_rows, torch.ones(2, 3, dtype=torch.float64 if last else torch.float32), group),
        refusal(gather_rows, torch.ones(2, 3, requires_grad=last), group),
    ]
    return ids.rows.tolist(), ids.first, plain, tuple(none), raised


# ---- states, and what is rejected -----------------------------------------------------------------------


def states_after(place, steps, states=None):
    """The states of all parts after some steps, restored from other states first."""
    parts = learners() | {"Incremental": ns.detectors.Incremental(50, 3, accept=0.5), "Bank": None}
    known = ns.Positives.from_pairs(np.arange(N), np.arange(N), N, ITEMS)
    bank = WholeBatch(ns.samplers.Bank(ns.pools.Everything(known), ITEMS), place[2])
    parts["Bank"] = bank
    for name, part in parts.items():
        if states is not None:
            part.restore(states[name])
    for step in steps:
        query, negatives, vectors = step_of(step)
        own, drawn, mine = part_of_step(place, query, negatives, vectors)
        for name in ("Memory", "Memory, bfloat16"):
            observe_all(parts[name], own, None, vectors=mine, group=place[2])
        observe_all(parts["LearnedQuantile"], own, drawn, group=place[2])
        bank.observe(own, bank.sample(own, 3, rng=ns.rng_for(0, step)), vectors=mine)
        rows = own_rows(place, 50)
        samples, given = np.arange(50)[rows], features(50)[rows] + np.float32(0.1 * step)
        update_on_first(
            parts["Incremental"], samples, given, lambda whole: parts["Incremental"].update(whole, 0.5), group=place[2]
        )
    return {name: part.state() for name, part in parts.items()}


def refusals(place):
    """{case: the sentence that each process raises}; all of them in every process, and none waits."""
    rank, size, group = place
    last = rank == size - 1
    known = ns.Positives.from_pairs([0, 1], [0, 1], n_items=3)
    static = WholeBatch(ns.samplers.Static(ns.pools.Everything(known, on_short="raise")), group)
    memory, rng = ns.pools.Memory(4), ns.rng_for(0)
    query, detector = ns.Query([0, 1], positives=[0, 1]), ns.detectors.Incremental(4, 2)
    negatives = ns.Negatives(np.zeros((2, 2), np.int64))

    def update(ids=(0, 1, 2, 3), rows=None, call=lambda whole: detector.update(whole, 0.5)):
        given = np.eye(4, dtype=np.float32)[: len(ids)] if rows is None else rows
        return refusal(update_on_first, detector, list(ids), given, call, group=group)

    def failing(whole):
        raise ZeroDivisionError(len(whole))

    return {
        "rng": refusal(static.sample, query, 1, rng=ns.rng_for(0, 0, rank)),
        "k": refusal(static.sample, query, 1 + last, rng=rng),
        "kinds of k": refusal(static.sample, query, [1, 1] if last else 1, rng=rng),
        "step": refusal(static.sample, ns.Query([0], step=int(last)), 1, rng=rng),
        "positives": refusal(static.sample, ns.Query([0], positives=[1] if last else None), 1, rng=rng),
        "a bad query": refusal(static.sample, [0] if last else query, 1, rng=rng),
        "no generator": refusal(static.sample, query, 1, rng=7 if last else rng),
        "short": refusal(static.sample, query, 3, rng=rng),
        "width": refusal(observe_all, memory, query, None, vectors=np.ones((2, 2 + last)), group=group),
        "rows": refusal(observe_all, memory, query, None, vectors=np.ones((2 + last, 2)), group=group),
        "negatives": refusal(observe_all, memory, query, negatives if last else None, group=group),
        "shares": refusal(in_shares(lambda anchors, ids: ids, group), np.arange(2 + last), np.ones((2 + last, 1))),
        "a model": failing_model(group, fails=last),
        "missing": update((0, 1, 3)),
        "too few": update((0, 1_000_000_000_000)),
        "below 0": update((0, -1 if last else 1)),
        "widths": update(rows=np.ones((4, 2 + last), np.float32)),
        "dtypes": update(rows=np.ones((4, 2), np.float64 if last else np.float32)),
        "whole numbers": update(rows=np.ones((4, 2), np.int64)),
        "collapsed": update(rows=np.ones((4, 2), np.float32)),
        "update": refusal(lambda: update_on_first(detector, [0], np.ones((1, 1)), failing, group=group))
        if rank
        else str(type_of(lambda: update_on_first(detector, [0], np.ones((1, 1)), failing, group=group))),
        "unchanged": (len(memory), detector.updates),
    }


def failing_model(group, *, fails):
    """A model that raises an error in one process, called for a draw of all."""

    def score(anchors, ids):
        if fails:
            raise IndexError("of this process")
        return ids * 0.5

    known = ns.Positives.from_pairs([0, 1], [0, 1], n_items=9)
    sampler = WholeBatch(ns.samplers.Dynamic(ns.pools.Everything(known), in_shares(score, group), 4), group)
    try:
        sampler.sample(ns.Query([0, 1]), 1, rng=ns.rng_for(0))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def type_of(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"


def backends():
    """Groups whose backend serves GPUs only: no GPU is here, so a tensor of the CPU cannot be exchanged."""
    group = dist.new_group(backend="cuda:gloo")
    query = ns.Query([0], positives=[1])
    memory = ns.pools.Memory(4)
    return [
        refusal(gather_rows, torch.ones(2, 2), group),
        refusal(observe_all, memory, query, None, group=group),
        refusal(update_on_first, ns.detectors.Incremental(4, 2), [0], np.ones((1, 1)), print, group=group),
    ]


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return refusal(observe_all, ns.pools.Memory(4), ns.Query([0], positives=[1]), None)


def in_a_worker():
    loader = torch.utils.data.DataLoader(Rows(), num_workers=1, multiprocessing_context="fork", collate_fn=list)
    return next(iter(loader))[0]


def answer(check, *arguments):
    """What a check answers; an error is an answer, too, so that a failing test says it."""
    try:
        return check(*arguments)
    except Exception as error:
        return repr(error)


def work(rank, folder):
    """One of three processes. What it finds goes to a file."""
    torch.set_num_threads(1)
    ns.set_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", timedelta(seconds=SECONDS), world_size=3, rank=rank)
    two, found = dist.new_group([0, 1]), {}
    saved = None
    for size, group in ((2, two), (3, None)):
        if rank < size:
            place = (rank, size, group)
            for name in METHODS if size == 2 else AMONG_THREE:
                found[size, name] = answer(draws_as_one, place, name)
            for name in learners():
                found[size, name] = answer(learns_as_one, place, name)
            for name, loss in LOSSES.items():
                found[size, name] = answer(loss_as_one, place, loss)
            for check in (
                *(tensors_and_scores_in_shares, few_rows_in_shares, pushes_as_one, online_as_one, clusters_as_one),
                *(a_judge_learns_as_one, model_as_one, gathers, refusals),
            ):
                found[size, check.__name__] = answer(check, place)
            if size == 2:
                saved = [states_after(place, range(3))]
        if size == 2:
            saved = saved or [None]
            dist.broadcast_object_list(saved, src=0)
    found["held"] = held_while_updating((rank, 3, None))
    found["states"] = states_after((rank, 3, None), range(3, 5), saved[0])
    found["backends"], found["a worker"] = backends(), in_a_worker()
    torch.save(found, f"{folder}/{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()
