"""The command line: one function per command, each calling one library function.

A refusal is printed as one sentence, never a traceback, and the exit code is 2.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from naysay.errors import MissingExtraError, NaysayError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="The negatives that contrastive and embedding models learn from.",
)


@app.callback(invoke_without_command=True)
def about(*, version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """The negatives that contrastive and embedding models learn from."""
    if version:
        from naysay import __version__

        typer.echo(f"naysay {__version__}")
        raise typer.Exit


@app.command()
def methods(name: Annotated[str, typer.Argument(help="A method or one of its names; all without it.")] = "") -> None:
    """List the catalogue, or show one method: paper, formula, parts, cost and an example."""
    from naysay.catalog.show import print_method, print_methods

    print_method(name) if name else print_methods()


@app.command()
def demo(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A quarter of the library and a fifth of the steps.")] = False,
    seed: Annotated[int, typer.Option(help="Another seed splits and trains anew.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of report.html and results.json; ./naysay-demo.")] = None,
) -> None:
    """Train on Python's own library with four kinds of negatives, say who won, and write a report."""
    from naysay.demo import run

    run(quick=quick, seed=seed, out=out)


@app.command()
def howmany(
    *,
    train_auc: Annotated[
        float | None, typer.Option(help="Training AUC at convergence, from a run with one uniform negative.")
    ] = None,
    val_auc: Annotated[
        str, typer.Option(help="Validation AUCs of that run: a .csv, .json or .npy file, or 0.52,0.61,0.66.")
    ] = "",
    column: Annotated[str, typer.Option(help="Which column of the .csv file, if none is named auc or val_auc.")] = "",
    separation: Annotated[
        list[float] | None, typer.Option(help="Instead of AUCs: a separation, on a simulated run. Can be repeated.")
    ] = None,
    weight: Annotated[float, typer.Option(help="Of good and bad samples against easy ones.")] = 0.9,
    k_max: Annotated[int, typer.Option(help="The largest k to look at.")] = 1000,
    plot: Annotated[Path | None, typer.Option(help="Draw the paper's figures to this .svg or .png file.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all that was found to this file.")] = None,
) -> None:
    """Estimate how many negatives per positive make the most of noisy labels, from the AUCs of a run."""
    from naysay.quantity._command import howmany as run

    run(
        train_auc=train_auc,
        val_auc=val_auc,
        column=column,
        separations=separation or (),
        weight=weight,
        k_max=k_max,
        plot=plot,
        json=json,
    )


@app.command()
def thresholds(
    scores: Annotated[Path, typer.Argument(help="Scores of negatives, higher is closer: an .npy or .parquet file.")],
    *,
    column: Annotated[str, typer.Option(help="Which column of the .parquet file, if none is named score.")] = "",
    positives: Annotated[
        int, typer.Option("--positives", "--n-positives", help="Known positives; they count among all pairs.")
    ] = 0,
    false_share: Annotated[float, typer.Option(help="Share of all pairs that may be false negatives.")] = 0.001,
    hard_share: Annotated[float, typer.Option(help="Share of all pairs that should be hard negatives.")] = 0.05,
    low_grid: Annotated[str, typer.Option(help="Low values to choose from: 0.12,0.121 or first:last:step.")] = "",
    high_grid: Annotated[str, typer.Option(help="High values to choose from, in the same form.")] = "",
    start_low: Annotated[float, typer.Option(help="The low at which the table of high values is counted.")] = 0.0,
    scope: Annotated[str, typer.Option(help="all: one pair of thresholds; anchor: one for each row.")] = "all",
    plot: Annotated[Path | None, typer.Option(help="Draw the scores in their bands to this .svg or .png file.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all that was found to this file.")] = None,
) -> None:
    """Choose the scores from which negatives are hard, and likely false, by shares of all pairs."""
    from naysay.detectors._thresholds_command import thresholds as run

    run(
        scores,
        column=column,
        positives=positives,
        false_share=false_share,
        hard_share=hard_share,
        low_grid=low_grid,
        high_grid=high_grid,
        start_low=start_low,
        scope=scope,
        plot=plot,
        json=json,
    )


@app.command()
def mine(
    pairs: Annotated[Path, typer.Argument(help="Anchors and their positives: .parquet, .jsonl, .csv or .tsv.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The training file: .parquet, .jsonl or .hf.")],
    k: Annotated[str, typer.Option("-k", help="Negatives for each anchor, or auto.")] = "8",
    corpus: Annotated[Path | None, typer.Option(help="The documents: ids, texts or both.")] = None,
    queries: Annotated[Path | None, typer.Option(help="The anchors: ids, texts or both.")] = None,
    model: Annotated[str | None, typer.Option(help="The folder of an encoder that makes the vectors.")] = None,
    query_vectors: Annotated[Path | None, typer.Option(help="A vector for each anchor: .npy, ...")] = None,
    corpus_vectors: Annotated[Path | None, typer.Option(help="A vector for each document.")] = None,
    encoded: Annotated[Path | None, typer.Option(help="A folder in which --model keeps its vectors.")] = None,
    ignore: Annotated[Path | None, typer.Option(help="Pairs that are neither positive nor negative.")] = None,
    same_ids: Annotated[bool, typer.Option("--same-ids", help="Anchor i is document i.")] = False,
    source: Annotated[list[str] | None, typer.Option(help="More candidates: bm25. Can be repeated.")] = None,
    quotas: Annotated[str, typer.Option(help="How many of each source: search=4,bm25=2.")] = "",
    report: Annotated[Path | None, typer.Option(help="Write what was mined, and why, to this .html file.")] = None,
    budget: Annotated[str, typer.Option(help="Memory for the job: 2GB, 500MB.")] = "2GB",
    threads: Annotated[int | None, typer.Option(help="Of the search.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a job that was stopped.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Throw an unfinished job away.")] = False,
    job: Annotated[Path | None, typer.Option(help="The job's folder; by default beside the output.")] = None,
    format: Annotated[str, typer.Option(help="triplet, n-tuple, flagembedding, ids, trec, ...")] = "triplet",
    with_scores: Annotated[bool, typer.Option("--with-scores", help="Write scores, too.")] = False,
    short: Annotated[str | None, typer.Option(help="Anchors with fewer than k in n-tuples: drop or raise.")] = None,
    corpus_path: Annotated[str | None, typer.Option(help="Of the format nemo: where its corpus lies.")] = None,
    tag: Annotated[str | None, typer.Option(help="Of the format trec: the name of the run.")] = None,
    metric: Annotated[str, typer.Option(help="cosine, dot or l2.")] = "cosine",
    judge: Annotated[
        str, typer.Option(help="auto, none, calibrated:0.02, margin:0.05, share:0.95, absolute:0.8, bands:0.3,0.7.")
    ] = "auto",
    select: Annotated[str, typer.Option(help="top, random, softmax, spread or mmr.")] = "top",
    temperature: Annotated[float | None, typer.Option(help="Of softmax.")] = None,
    balance: Annotated[float | None, typer.Option(help="Of mmr.")] = None,
    depth: Annotated[int | None, typer.Option(help="Candidates that are searched for each anchor.")] = None,
    ranks: Annotated[str, typer.Option(help="The window of ranks: 10-100, or 10-.")] = "",
    floor: Annotated[float | None, typer.Option(help="The lowest score of a negative.")] = None,
    on_short: Annotated[str, typer.Option(help="With fewer than k: pad, drop, relax, random, raise.")] = "pad",
    most: Annotated[int, typer.Option(help="Of -k auto: at most so many.")] = 32,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    approximate: Annotated[
        str | None, typer.Option(help="An index in place of the exact search: auto, ivf, hnsw.")
    ] = None,
    min_recall: Annotated[float, typer.Option(help="Of an index, or the job is refused.")] = 0.9,
    anchor_column: Annotated[str, typer.Option(help="Of the pairs.")] = "",
    positive_column: Annotated[str, typer.Option(help="Of the pairs.")] = "",
    query_id_column: Annotated[str, typer.Option(help="Of --queries.")] = "",
    query_text_column: Annotated[str, typer.Option(help="Of --queries.")] = "",
    id_column: Annotated[str, typer.Option(help="Of --corpus.")] = "",
    text_column: Annotated[str, typer.Option(help="Of --corpus.")] = "",
    title_column: Annotated[str, typer.Option(help="Of --corpus: put before the text.")] = "",
) -> None:
    """Mine hard negatives for pairs of texts or ids, and write a training file. Can be stopped and resumed."""
    from naysay.jobs.command import STOPPED, mine_files

    try:
        mine_files(
            pairs,
            output=output,
            k=k,
            corpus=corpus,
            queries=queries,
            model=model,
            query_vectors=query_vectors,
            corpus_vectors=corpus_vectors,
            encoded_folder=encoded,
            ignore=ignore,
            same_ids=same_ids,
            sources=source or (),
            quotas=quotas,
            report=report,
            budget=budget,
            threads=threads,
            resume=resume,
            fresh=fresh,
            job=job,
            format=format,
            with_scores=with_scores,
            short=short,
            corpus_path=corpus_path,
            tag=tag,
            metric=metric,
            judge=judge,
            select=select,
            temperature=temperature,
            balance=balance,
            depth=depth,
            ranks=ranks,
            floor=floor,
            on_short=on_short,
            most=most,
            seed=seed,
            approximate=approximate,
            min_recall=min_recall,
            columns={
                "anchor_column": anchor_column,
                "positive_column": positive_column,
                "query_id_column": query_id_column,
                "query_text_column": query_text_column,
                "id_column": id_column,
                "text_column": text_column,
                "title_column": title_column,
            },
        )
    except KeyboardInterrupt:
        typer.echo(f"naysay: mine: {STOPPED}", err=True)
        raise typer.Exit(130) from None


@app.command()
def audit(
    negatives: Annotated[Path, typer.Argument(help="A training file: .parquet, .jsonl, .json or .hf, in any format.")],
    *,
    format: Annotated[str, typer.Option(help="triplet, n-tuple, ids, ...; told by the columns without it.")] = "",
    query_vectors: Annotated[Path | None, typer.Option(help="A vector for each anchor: .npy, ...")] = None,
    corpus_vectors: Annotated[Path | None, typer.Option(help="A vector for each document.")] = None,
    query_ids: Annotated[
        Path | None, typer.Option(help="What the anchors' vectors are called: .txt, one a line, or a table.")
    ] = None,
    corpus_ids: Annotated[Path | None, typer.Option(help="What the documents' vectors are called.")] = None,
    model: Annotated[str, typer.Option(help="In place of vectors: the folder of an encoder.")] = "",
    query_prompt: Annotated[str, typer.Option(help="Of --model: put before each anchor.")] = "",
    corpus_prompt: Annotated[str, typer.Option(help="Of --model: put before each document.")] = "",
    encoded: Annotated[Path | None, typer.Option(help="A folder in which --model keeps its vectors.")] = None,
    metric: Annotated[str, typer.Option(help="cosine, dot or l2.")] = "cosine",
    temperature: Annotated[float, typer.Option(help="Of InfoNCE, at which the pull is measured.")] = 0.05,
    alpha: Annotated[float, typer.Option(help="Of unlabelled positives, that may pass the line.")] = 0.05,
    fail_above: Annotated[
        str | None, typer.Option(help="Exit with 1 if the estimated share of false negatives is above: 2%, or 0.02.")
    ] = None,
    top: Annotated[int, typer.Option(help="How many of the worst rows to show.")] = 10,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write all that was found to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write it as one .html file.")] = None,
) -> None:
    """Say how good the negatives of a training set are: false, too easy, copies, repeated, k, and what to do."""
    from naysay.auditing.command import audit_command as run

    passes = run(
        negatives,
        format=format,
        query_vectors=query_vectors,
        corpus_vectors=corpus_vectors,
        query_ids=query_ids,
        corpus_ids=corpus_ids,
        model=model,
        query_prompt=query_prompt,
        corpus_prompt=corpus_prompt,
        encoded=encoded,
        metric=metric,
        temperature=temperature,
        alpha=alpha,
        fail_above=fail_above,
        top=top,
        seed=seed,
        json=json,
        report=report,
    )
    if not passes:
        raise typer.Exit(1)


def main() -> None:
    """Run a command; print a refusal as its sentence, also that of the system: no space for what is printed."""
    try:
        app()
    except (NaysayError, MissingExtraError, OSError) as refusal:
        try:
            sys.stdout.flush()
        except OSError:  # at its end Python would try again to print what is left, and fail loudly
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        typer.echo(f"naysay: {refusal}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
