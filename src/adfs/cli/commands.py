"""All commands: their help, the one that is meant, its run, and errors in one line.

Exit codes: 0 converged or done; 2 bad input or usage; 3 stopped before ``tol``; 1 the program or
its environment failed; 130 and 143 interrupted by SIGINT and SIGTERM.
"""

import argparse
import importlib
import re
import sys
from collections.abc import Sequence

from adfs.cli import files, options, output, settings
from adfs.cli.arguments import Command, Parser
from adfs.cli.main import Leaving
from adfs.cli.options import read_command
from adfs.errors import AdfsError, BeforeRanks, is_printed_elsewhere
from adfs.installed import load_file
from adfs.kernels import compile_notice
from adfs.mpi.launcher import rank_by_environment
from adfs.mpi.supervisor import is_supervised, supervise
from adfs.study.paper import ALL, CATALOGUE

FAILED, BAD_INPUT = 1, 2
RESULTS = {**{name: each.about for name, each in CATALOGUE.items()}, ALL: "all of them"}
WIDTH = max(map(len, RESULTS))
RESULT_LINES = "\n".join(f"  {name:<{WIDTH}}  {about}" for name, about in RESULTS.items())

# The problem of a plan: several numbers of nodes and graphs.
PLANNED = (
    options.PROBLEM.replace("--nodes N: positive  number", "--nodes N: text  number")
    .replace("--graph G: graph = grid", "--graph G: text = grid")
    .replace("to use (default: all others)", "to use (default: all others); without DATA, how many")
)

TRAIN = read_command(f"""
train  train a model to a certified duality gap

Train a regularised linear model with ADFS (Algorithm 1 of the paper; Algorithm 3 for losses that
are not smooth), or with one of the algorithms it is compared with. The samples are distributed to
the nodes of a network, or are there already. The run ends when a duality gap proves that no model
is better by more than --tol.

options:
{options.DATA}{options.PROBLEM}{options.TIME}{options.COSTS}
the run
  --algorithm NAME: algorithm = auto  one of the names that `adfs info` lists; auto takes adfs, or
    ns-adfs where the loss is not smooth; best takes what `adfs plan` recommends
{options.RULE}{options.DRAWS}
  --tol TOL: number = 1e-06  stop at this relative duality gap, gap / |F|
  --max-iter N: whole  most events, or units of time under --schedule poisson, which hold about one
    event each (default: well beyond what theory needs for --tol)
  --time-limit S: number  most seconds in the loop, including those before a --resume (default: no
    limit)
  --evaluate-every N: positive  events, or units of time under --schedule poisson, between
    evaluations, for a fine trace (default: as few as stopping needs; with --trace or --report about
    ten more, which do not change the run)
{options.SEED}{options.RANKS}
  --warm-start MODEL: input  start from this model file
files and output
  --test FILE: input  a DATA on which to test the model
  --out FILE: output  write the model here (.npz)
  --coefficients FILE: output  write the coefficients with the names of their features here (.csv)
  --trace FILE: output  write one row per evaluation here (.csv)
{options.REPORT}
  --checkpoint DIR: folder  save checkpoints in this folder, for --resume
  --checkpoint-every N: positive  events or rounds, or units of time under --schedule poisson,
    between two checkpoints (default: ten passes over the samples, at least 5,000,000 sample steps)
  --resume  continue from the newest complete checkpoint, if any
  --timeline FILE: output  what each rank did when, as a Chrome trace (.json) or a picture (.png,
    .svg, .pdf); needs --engine mpi
{options.JSON}{options.QUIET}{options.SETTINGS}

examples:
  adfs train breast-cancer --nodes 9 --sigma 0.1 --tol 1e-8 --out model.npz --trace trace.csv
  adfs train train.txt.gz --C 1 --intercept --class-weight balanced --test test.txt
  adfs train 'part-{{node}}.txt' --graph ring --tau 0.5 --json
  adfs train --config run.toml --seed 1

The objective is F(theta) = sum over nodes of [ sum of losses + sigma/2 |theta|^2 ]: sums, not
means. Exit codes: 0 converged, 2 bad input, 3 stopped before tol, 1 the program or a rank failed,
130 and 143 interrupted (what exists is kept).""")

PREDICT = read_command(f"""
predict  predict with a trained model

Print one prediction per row with a model that `adfs train --out` wrote: a label of the training
data, a probability, or for regressions a value; and how good the predictions are, where the data
hold labels.

options:
  MODEL: input  a file that `adfs train --out` wrote
{options.DATA}; y is not needed
  --proba  print the probability of the larger label instead (logistic)
  --out FILE: output  write the predictions here, one per line
{options.JSON}

examples:
  adfs predict model.npz test.txt > labels.txt
  adfs predict model.npz breast-cancer --proba --out probabilities.txt
  adfs predict model.npz breast-cancer --json

Predictions go to stdout and how good they are to stderr; on a terminal only the first ones are
shown. With --out the predictions go to the file (.csv, .parquet and .npy are written as such, any
other as one line per row) and how good they are to stdout. Columns that the data do not have count
as zero. Exit codes: 0 done, 2 bad input, 1 the program or its environment failed, 130 and 143
interrupted.""")

PATH = read_command(f"""
path  train for a grid of C, and find the best by cross-validation

Train one model per value of C, from strong to weak regularisation, each from the solution of the
one before it. With --cv K every node deals its rows to K folds; each fold is predicted by models
that were trained without it, and the C with the best mean is marked.

options:
{options.DATA}{options.PROBLEM.replace(options.STRENGTH, options.GRID)}{options.TIME}
the runs
  --cv K: positive  number of folds, at least 2 (default: no cross-validation)
  --algorithm NAME: algorithm = auto  one of the names that `adfs info` lists; auto takes adfs, or
    ns-adfs where the loss is not smooth; best takes what `adfs plan` recommends
{options.RULE}{options.DRAWS}
  --tol TOL: number = 1e-06  stop a run at this relative duality gap, gap / |F|
  --max-iter N: whole  most events of a run, or units of time under --schedule poisson, which hold
    about one event each (default: well beyond what theory needs for --tol)
{options.SEED}{options.RANKS}
files and output
  --out FILE: output  write the model of the best C here (.npz), trained on all rows; without --cv
    that of the last C
  --table FILE: output  write one row per C here (.csv)
  --picture FILE: output  draw scores and coefficients against C here (.png, .svg, .pdf)
{options.JSON}{options.QUIET}{options.SETTINGS}

examples:
  adfs path breast-cancer --standardize --intercept --C 1e-3:10:9 --cv 5 --out model.npz
  adfs path train.txt.gz --C 0.1,1,10 --cv 3 --table path.csv
  mpiexec -n 2 adfs path breast-cancer --standardize --C 1e-3:10:9 --cv 5 --engine mpi

The best C has the lowest mean log-loss over the folds (--loss logistic), the highest accuracy
(other classes) or the lowest root mean squared error; of equal ones it is the smallest. Folds
depend on --seed and the nodes' rows alone. Exit codes: 0 all runs converged, 2 bad input, 3 a run
stopped before tol, 1 the program or a rank failed, 130 and 143 interrupted.""")

SPLIT = read_command(f"""
split  divide a file into one file per node

Write the rows of one file to one file per node, as `adfs train` would distribute them: a training
on the files has the bits of a training on the whole. Lines are copied as they are. CSV, TSV and
Parquet can be converted into each other, with all columns.

options:
{options.ONE_FILE.replace("a name", "or a name")}
  --nodes N: positive = {options.DEFAULT_NODES}  number of nodes
  --out FILE: shards  the files, with {{node}} for the number of the node, from 0; the suffix says
    the format, and .gz, .bz2 or .xz behind it a compression of text
  --partition HOW: cut = even  even (shuffled, as by train) or contiguous
  --by COLUMN: text  column of a table: rows with the same value go to one node. The values in
    their order go to the node with the fewest rows so far
  --categorical A,B,C: names  columns of a CSV or TSV file that hold names, though they look like
    numbers; they stay words in Parquet files
{options.SEED}{options.JSON}

examples:
  adfs split train.txt.gz --nodes 3 --out 'new-{{node}}.txt'
  adfs split breast-cancer --nodes 9 --partition contiguous --out 'shard-{{node}}.svm.gz' --json

Files of an earlier split are replaced, each when it is complete. Exit codes: 0 done, 2 bad input,
1 the program or its environment failed, 130 and 143 interrupted.""")

COMPARE = read_command(f"""
compare  compare algorithms on one problem, by time to accuracy

Run several algorithms on one problem and one network, and print how long each takes to come within
1e-2, 1e-4, 1e-6 and 1e-8 of the certified optimum: in the idealized time of the network, or in
iterations, passes, messages, bytes or seconds.

options:
{options.DATA.replace("DATA", "[DATA]", 1)}
fixed problems in the place of DATA
  --suite NAME: suite  compare on three problems each: paper (Higgs and Covtype), sparse (a9a,
    mushrooms, Reuters) or unequal (rows sorted by label, or in Dirichlet's shares), under both
    --costs, until --tol (default 1e-6), with 3 seeds, by default all methods there are
{options.PROBLEM}{options.DELAYS}{options.COSTS}
the runs
  --algorithms A,B,C: names  names from `adfs info`, with a rule for the parameters as in
    dsba:theory if they are not to be tuned (default: all that accept the problem; the table lists
    the others)
  --seeds K: int32  number of seeds, from --seed on; the table shows medians (default 1)
{options.SEED}
  --tol TOL: number  stop a run at this suboptimality, mean over nodes of F(theta_i) - F*, over
    |F*|; with --engine mpi, at this relative duality gap (default 1e-08)
  --clock-limit X: number  most idealized time of a run (default: 5 times what adfs needs, if it
    takes part; no limit with --engine mpi)
  --time-limit S: number  most seconds of a run in its loop (default: no limit)
  --max-iter N: whole  most events of a run, or rounds of a synchronous method (default: well beyond
    what theory needs for --tol)
  --jobs N: positive = 1  runs at a time; wall times are accurate only with 1, since runs that share
    a machine slow each other down; all else has the same bits
{options.RANKS}
files and output
  --out DIR: folder  folder for config, traces, tables and pictures; finished runs in it are not
    computed again
{options.REPORT}
  --axis NAME: axis = idealized_time  of table and picture: {", ".join(options.AXES)}
{options.JSON}{options.QUIET}{options.SETTINGS}

examples:
  adfs compare breast-cancer --nodes 9 --sigma 0.1 --algorithms adfs,adfs:paper
  adfs compare breast-cancer --algorithms adfs,msda,dsba:theory --seeds 3 --jobs 2 --out results
  adfs compare breast-cancer --nodes 4 --speed 1,1,1,10 --delay-law pareto --delay-shape 1.5
  mpiexec -n 2 adfs compare breast-cancer --engine mpi --algorithms adfs,newton,lbfgs --tol 1e-6

Suboptimality is measured against an optimum that is certified by its duality gap, never against
the best curve. In the table, '> x' means that a run ended at x without reaching the accuracy, and
'-' that runs stopped at --tol before it. With --out, finished runs are kept: the same command
continues after an interruption, and computes nothing twice.

With --engine mpi the algorithms run one after another on the ranks that mpiexec started, each to
the relative duality gap --tol: no rank has all rows, so the optimum is not known. The table shows
the seconds of each run and of its set-up. Exit codes: 0 done, whether or not tol was reached, 2 bad
input, 1 the program or its environment failed, 130 and 143 interrupted.""")

PLAN = read_command(f"""
plan  predict which method is fastest, and what limits it

Predict idealized time, messages and bytes of every method for a DATA, or without DATA for given
sizes; say what limits each, at how many nodes the network takes as long as computing, and which
method to take. No run is timed for it, so a recommendation repeats.

options:
{options.DATA.replace("DATA", "[DATA]", 1)}
sizes in the place of DATA, with --features
  --rows N: positive  number of samples on all nodes
  --kappa K: number  condition number of the problem, 1 + smoothness / regularisation
{PLANNED}{options.DELAYS}{options.COSTS}
the runs that are predicted
  --tol TOL: number = 1e-06  relative duality gap
  --ranks R: positive  predict seconds on so many processes (--costs measured); by default one per
    node
  --time-steps  predict seconds from a few steps of every method on these rows, here or on the ranks
    that mpiexec started; the recommendation stays the same
  --no-pilot  predict from theory and experience alone, without short runs on a part of the rows
{options.SEED}{options.RANKS}
files and output
  --picture FILE: output  draw times against nodes and against tau here (.png, .svg, .pdf)
{options.JSON}{options.SETTINGS}

examples:
  adfs plan breast-cancer --nodes 9 --tau 20
  adfs plan --rows 10000000 --features 1000 --kappa 1e5 --nodes 4:1024 --graph grid,hypercube
  adfs plan breast-cancer --nodes 16 --graph ring --json
  mpiexec -n 2 adfs plan breast-cancer --engine mpi --time-steps

Without DATA, --nodes may be a list such as 4,16 or a range such as 4:1024 (in steps of a factor
4), and --graph a list. Exit codes: 0 done, 2 bad input, 1 the program or its environment
failed.""")

REPRODUCE = read_command(f"""
reproduce  measure the paper's results again

Measure a result of the paper again, print it beside what the paper claims, and say whether the
claim holds.

names:
{RESULT_LINES}

options:
  NAME: result  one of the names above
  --quick  the same at a size that ends within a minute
  --out DIR: folder  folder for reports, tables and pictures, with one folder per name; finished
    runs in it are not computed again
  --jobs N: positive = 2  threads; results are the same
{options.JSON}{options.QUIET}{options.SETTINGS}

examples:
  adfs reproduce theorem-2
  adfs reproduce figure-3b --out results
  adfs reproduce all --quick
  adfs reproduce theorem-2 --quick --json

Each name prints its setting, what the paper claims, what was measured, and whether the claim holds:
yes, no or partly, decided from the numbers. Figures need the real data (ADFS_DATA, see
`adfs datasets`); with --quick, data are generated where a set is not on disk. Ctrl-C keeps what is
finished. Exit codes: 0 done, whether or not the claims hold, 2 bad input, 1 the program or its
environment failed, 130 and 143 interrupted.""")

SAMPLE = read_command(f"""
sample  sample a schedule from a seed

Sample a schedule from a seed: with the parameters that suit a DATA, or without DATA with equal
probabilities and a share --p-comm of communications.

options:
{options.DATA.replace("DATA", "[DATA]", 1)}{options.PROBLEM}{options.TIME}
the schedule
{options.RULE}
  --p-comm P: number  share of communications (default: what the rule says; 0.5 without DATA)
  --events N: positive = 1000  number of events
{options.SEED}
files and output
  --out FILE: output  write the schedule here (.npz)
{options.JSON}{options.SETTINGS}

examples:
  adfs schedule sample --graph ring --nodes 8 --p-comm 0.3 --events 1000 --out s.npz
  adfs schedule sample breast-cancer --nodes 9 --sigma 0.1 --events 10000 --seed 1 --json""")

SHOW = read_command(f"""
show  counts, shares and the first events

Show the content of a schedule file: how many events of which kind, on which network, and the first
of them in the paper's notation.

options:
{options.SCHEDULE_FILE}
  --first N: whole = {options.FIRST_EVENTS}  how many events to list
{options.JSON}

examples:
  adfs schedule show s.npz
  adfs schedule show s.npz --first 3 --json""")

TIMES = read_command(f"""
times  when each node is done, and how long it waited

Time a schedule on a model of the network: when each node is done, how long it was busy and how long
it waited. The algorithm is not run.

options:
{options.SCHEDULE_FILE}{options.JSON}{options.DELAYS}{options.SETTINGS}

examples:
  adfs schedule times s.npz --tau 5 --delay-law exponential
  adfs schedule times s.npz --speed 1,1,10,1,1,1,1,1
  adfs schedule times s.npz --clock rendezvous --json""")

TIMELINE = read_command(f"""
timeline  what each node does when, as a picture or a trace

Draw a window of a schedule as in the paper's Figure 2, or write it for chrome://tracing and
ui.perfetto.dev: what each node does when, and when it waits.

options:
{options.SCHEDULE_FILE}{options.DELAYS}
the window
  --first N: whole = 0  first event of the window
  --last N: positive  event before which the window ends (default: {options.WINDOW} after --first)
files and output
  --out FILE: output  the picture (.png, .pdf or .svg)
  --chrome FILE: output  the trace (.json)
{options.JSON}{options.SETTINGS}

examples:
  adfs schedule timeline s.npz --tau 3 --last 40 --out timeline.png
  adfs schedule timeline s.npz --first 100 --last 200 --chrome timeline.json --json""")

SCHEDULE = read_command(
    """
schedule  sample, show, time and draw a schedule

Work with schedules: which node computes and which edge communicates, in which order. A schedule is
sampled from a seed. It can be timed and drawn under any model of the network without running the
algorithm.

examples:
  adfs schedule sample --graph ring --nodes 8 --p-comm 0.3 --events 1000 --out s.npz
  adfs schedule show s.npz
  adfs schedule times s.npz --tau 5 --delay-law exponential
  adfs schedule timeline s.npz --tau 5 --last 40 --out timeline.png --chrome timeline.json""",
    (SAMPLE, SHOW, TIMES, TIMELINE),
)

DATASETS = read_command(f"""
datasets  list the data sets known by name

List the data sets whose names can be given as DATA: their size, their task, and the file in which
they were found, if they are on disk.

options:
  --forget NAME: dataset  remove the file of this set from the cache, and its checksum
{options.JSON}

examples:
  adfs datasets
  ADFS_DATA=~/libsvm adfs datasets
  adfs datasets --json

A name is searched in the folder ADFS_DATA, then in the cache (ADFS_CACHE, else ~/.cache/adfs), and
downloaded when it is first used, and again after --forget NAME. The numbers of rows are the
published ones: a file on disk may have others.""")

INFO = read_command(f"""
info  show versions, cores, caches and extras

Show what a bug report should contain: versions, cores, extras, the registered algorithms, where
compiled kernels, data sets and measured costs are kept. With --mpi, measure what a message and a
proximal step take here, and which --tau follows. With --costs, measure what elementary steps take,
for --costs measured of other commands. With --compile, compile all kernels now, as for a container
image.

options:
  --mpi  measure what a proximal step and an exchange between ranks take; start it with mpiexec
  --compile  compile every kernel that an ordinary run uses and that is not compiled yet; takes a
    minute or two on one core
  --costs  measure what gradients, Hessians and proximal steps take on one core, and store it in the
    place of what was measured before; best on a quiet machine
{options.JSON}

examples:
  adfs info
  adfs info --json
  adfs info --costs
  mpiexec -n 2 adfs info --mpi""")

COMPLETION = read_command("""
completion  print a script that completes commands in a shell

Print a script for bash or zsh that completes commands, flags, the names that flags take (losses,
algorithms, graphs and so on) and files.

options:
  SHELL: shell  bash or zsh

examples:
  adfs completion bash > adfs.bash
  adfs completion zsh > _adfs

bash: add `source /path/to/adfs.bash` to ~/.bashrc, or install it for all shells with

  mkdir -p ~/.local/share/bash-completion/completions
  adfs completion bash > ~/.local/share/bash-completion/completions/adfs

zsh: put _adfs into a folder of $fpath, and have `autoload -U compinit && compinit` in ~/.zshrc. A
new shell then completes. After an update of adfs, write the file again.""")

ADFS = read_command(
    """
adfs

Train regularised linear models over a network of nodes, to a duality gap you can trust.

examples:
  adfs train breast-cancer --nodes 9 --sigma 0.1 --tol 1e-8 --out model.npz
  adfs predict model.npz breast-cancer > labels.txt
  adfs compare breast-cancer --nodes 9 --sigma 0.1 --algorithms adfs,msda

`adfs COMMAND --help` explains a command. Exit codes: 0 converged or done, 2 bad input, 3 stopped
before tol, 1 the program or its environment failed, 130 and 143 interrupted.""",
    (TRAIN, PREDICT, PATH, SPLIT, COMPARE, PLAN, REPRODUCE, SCHEDULE, DATASETS, INFO, COMPLETION),
)


def run(argv: Sequence[str] | None, leaving: Leaving) -> int:
    """Find the command, run it, and report an error in one line; the exit code."""
    args, supervised = None, is_supervised()
    checks_files = not supervised and not rank_by_environment()  # for all processes of the job
    try:
        try:
            args = parse(list(sys.argv[1:] if argv is None else argv))
            if checks_files:
                files.check_paths(args)
                settings.require_text(args)
        except (AdfsError, OSError) as error:
            raise error from BeforeRanks()
        args.leaving = leaving
        quiet = getattr(args, "quiet", False)
        if quiet:
            compile_notice.enabled = False
        with output.warnings_as_notes(quiet):
            if getattr(args, "engine", "local") == "mpi" and not supervised:
                code = supervise(args.command_line)
            else:  # the files of the commands import NumPy
                _, module, *verb = args.prog.split()
                file = importlib.import_module(f"adfs.cli.{module}")
                code = getattr(file, "_".join(["run", *verb]))(args)
            if checks_files:
                settings.save(args, code)
            return code
    except SystemExit as stop:
        return int(stop.code or 0)
    except AdfsError as error:
        return _report(error, as_flags(str(error), args), BAD_INPUT)
    except output.OutputError as error:
        return output.complain(error, FAILED)
    except MemoryError as error:
        return _report(error, "this needs more memory than there is; use less data.", FAILED)
    except OSError as error:
        why = f"{error.filename or 'a file'} cannot be used: {error.strerror}; check the path."
        return _report(error, why, BAD_INPUT)


def _report(error: Exception, message: object, code: int) -> int:
    """One line on stderr, unless another rank of the job prints it; the exit code."""
    if is_printed_elsewhere(error):
        return code
    before_ranks = isinstance(error.__cause__, BeforeRanks)
    return (output.refuse if before_ranks else output.complain)(message, code)


def parse(arguments: list[str]) -> argparse.Namespace:
    command, prog, words = find(arguments)
    if command.verbs:
        parser = Parser(command, prog)
        if not arguments:
            parser.print_help()
        parser.parse_args(words)
        parser.error("the name of the command must come first")
    load_plugins(words)
    expanded, config = settings.expand(command, prog, words)
    load_plugins(expanded)
    parser = Parser(command, prog)
    args, unknown = parser.parse_words(expanded)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if getattr(args, "sigma", None) is not None:
        args.C = None  # --sigma replaces --C, and its default too
    args.command_line = arguments[: len(arguments) - len(words)] + expanded
    args.config = config
    return args


def load_plugins(words: list[str]) -> None:
    """Import the files of ``--plugin``, whose names the parser has to know."""
    for place, word in enumerate(words):
        flag, equals, path = word.partition("=")
        if flag == "--plugin" and (equals or place + 1 < len(words)):
            load_file(path if equals else words[place + 1])


def find(words: list[str]) -> tuple[Command, str, list[str]]:
    """The command that the first words name, its full name, and the words after it."""
    command, prog = ADFS, "adfs"
    while words and (found := [verb for verb in command.verbs if verb.name == words[0]]):
        (command,), prog, words = found, f"{prog} {words[0]}", words[1:]
    return command, prog, words


# Arguments of Python functions whose flags have other names.
OTHER_NAMES = {
    "how": "--partition", "n_nodes": "--nodes", "n_events": "--events", "law": "--delay-law",
    "shape": "--delay-shape", "algorithm": "--algorithms", "parameters": "--algorithms",
}  # fmt: skip


def as_flags(message: str, args: argparse.Namespace | None) -> str:
    """The message with flags for arguments: ``--max-iter 3`` where Python has ``max_iter=3``.

    Messages write an argument as ``name=value``, or ``name=`` without a value. What the user has
    typed (a file may be called ``tol=1``) stays as it is.
    """
    if args is None:
        return message
    own = {each.dest: each.flag for each in args.command.options if each.flag}
    others = {name: flag for name, flag in OTHER_NAMES.items() if flag in own.values()}
    flags = {**others, **own}
    typed = [each for each in vars(args).values() if isinstance(each, str) and "=" in each]
    kept = "|".join(map(re.escape, typed)) or "(?!)"
    pattern = (
        rf"(?:{kept})|(?<![\w.'\"/=-])(?P<name>{'|'.join(flags)})="
        r"(?:'(?P<word>[\w.:+-]+)'|(?P<bare>(?=[\s,;.)]|$)))?"
    )

    def replace(found: re.Match[str]) -> str:
        if found["name"] is None:
            return found[0]
        flag = flags[found["name"]]
        return flag if found["bare"] is not None else f"{flag} {found['word'] or ''}"

    return re.sub(pattern, replace, message)
