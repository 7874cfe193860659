#!/usr/bin/env bash
# An auditor's session: who runs the system signs and exports, who audits checks without trusting.
#
#   bash examples/auditor_session.sh [FOLDER]
#
# Everything is made in FOLDER, which is made too; a new temporary one by default. The operator's half has the HMAC
# key and the signing key. The auditor's half has the exported file, a checkpoint that was handed
# over earlier, and the public key: no database, no secret, no network.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$(mktemp -d)}
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$folder"
cd "$folder"
say() { printf '\n== %s\n' "$*"; }

say "The operator: keys, an application at work, a checkpoint for the auditor"
bijotel keygen -o secret.hex
bijotel keygen --signing --name kettles.example -o signing.pem
unset BIJOTEL_HMAC_SECRET_FILE  # of the shell that this was started from
BIJOTEL_HMAC_SECRET=$(cat secret.hex)
export BIJOTEL_HMAC_SECRET
python -m examples.agent chain.db
bijotel checkpoint --db chain.db --signing-key file:signing.pem --out first.checkpoint
mkdir auditor
cp first.checkpoint signing.pub auditor/

say "The operator: more work, a second checkpoint, and what the auditor asks for"
python -m examples.agent chain.db
bijotel verify --db chain.db --deep
bijotel checkpoint --db chain.db --signing-key file:signing.pem --out second.checkpoint
bijotel consistency first.checkpoint second.checkpoint --db chain.db \
  --pubkey signing.pub -o auditor/growth.proof
bijotel export --db chain.db --checkpoint second.checkpoint -o auditor/evidence.jsonl
bijotel prove --db chain.db 4 --checkpoint second.checkpoint -o auditor/decision.tlog-proof
bijotel audit --db chain.db --compact

say "The auditor: nothing but files and the public key"
unset BIJOTEL_HMAC_SECRET
cd auditor
bijotel verify-export evidence.jsonl --pubkey signing.pub
bijotel verify-proof decision.tlog-proof --pubkey signing.pub
bijotel consistency first.checkpoint growth.proof --pubkey signing.pub

say "The auditor: a copy in which the answer was changed"
sed 's/warranty of 3 years/warranty of 5 years/' evidence.jsonl > forged.jsonl
code=0
bijotel verify-export forged.jsonl --pubkey signing.pub || code=$?
echo "exit code $code"
test "$code" -eq 1
