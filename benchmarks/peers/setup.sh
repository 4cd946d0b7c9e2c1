#!/usr/bin/env bash
# Make one virtual environment per peer library from its locked requirements.
# Usage: setup.sh DIR [NAME...]   (NAME: recbole, recbole_train, pykeen, pyg, pml, sentence_transformers,
# sentence_transformers_mining; all when none is given)
# PYTHON names the interpreter to use; the locks were made with Python 3.11.
set -euo pipefail

if (($# == 0)); then
  echo "usage: $0 DIR [NAME...]" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$1
shift
names=("$@")
if ((${#names[@]} == 0)); then
  names=(recbole recbole_train pykeen pyg pml sentence_transformers sentence_transformers_mining)
fi

for name in "${names[@]}"; do
  lock=$here/$name.txt
  venv=$dir/$name
  stamp=$venv/installed.txt
  if [[ ! -f $lock ]]; then
    echo "no such peer: $name" >&2
    exit 2
  fi
  # The stamp is a copy of the lock, written last: an unfinished or outdated environment lacks it.
  if cmp -s "$lock" "$stamp"; then
    echo "$name: already complete"
    continue
  fi
  echo "$name: installing into $venv"
  "${PYTHON:-python3.11}" -m venv --clear "$venv"
  pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet install)
  # Torch goes first, with what its build needs, so that nothing later chooses another build.
  # The rest is taken exactly as locked: RecBole declares packages its sampler never imports,
  # among them an old ray that has no build for newer Pythons.
  "${pip[@]}" --constraint "$lock" "$(grep '^torch==' "$lock")"
  "${pip[@]}" --no-deps --requirement "$lock"
  # A peer without a worker is there to compare values with, not speeds: see that it imports.
  if [[ -f $here/${name}_worker.py ]]; then
    "$venv/bin/python" "$here/${name}_worker.py" --help >/dev/null
  else
    "$venv/bin/python" -P -c "import $name"
  fi
  cp "$lock" "$stamp"
done
