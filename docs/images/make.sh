#!/usr/bin/env bash
# Makes the pictures of the README from the sample trace: needs a build, tmux, chromium and Python with
# ansi2html (pip install ansi2html).
#
#   docs/images/make.sh [HANDLESCOPE]        (default target/debug/handlescope)
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "${1:-target/debug/handlescope}")
images=$PWD/docs/images
work=$(mktemp -d)
trap 'tmux -L handlescope-images kill-server 2> /dev/null || true; rm -rf "$work"' EXIT

cp examples/server.etl "$work"
cp -r examples/symbols "$work/symbols"
cd "$work"

# A page as a picture of such a width and height.
picture() {
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
        --screenshot="$images/$2" --window-size="$3" "file://$work/$1" > /dev/null 2>&1
}

"$program" --symbol-path symbols server.etl -c '.report report.html' > /dev/null
picture report.html report.png 1100,1150

export HOME=$work XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config TERM=xterm-256color
tmux -L handlescope-images -f /dev/null new-session -d -x 118 -y 47 \
    "$program --symbol-path symbols server.etl"
sleep 2
tmux -L handlescope-images send-keys ".why -TopN 2" Enter
sleep 2
tmux -L handlescope-images send-keys ".dump ObjectRef -Leak -GroupBy process,type,createstack -TimeFmt s -TimeDigits 2" Enter
sleep 2
tmux -L handlescope-images capture-pane -e -p > console.ansi
python3 -m ansi2html --font-size 14px < console.ansi > console.html
picture console.html console.png 1050,790
