// Command write puts standard input into a jostler spool as one file.
//
//	usage: write SPOOL-DIR NAME.json < document
//
// SPOOL-DIR is <local-data-dir>/<experiment>/<datatype>; the file goes to the folder of today, UTC.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Put writes a document so that the agent sees it whole or not at all, even after a power failure.
func Put(top, name string, document []byte) error {
	// Hidden, so the agent does not look into it, and on the same file system, so a rename works.
	staging := filepath.Join(top, ".tmp-write-go")
	folder := filepath.Join(top, time.Now().UTC().Format("2006/01/02"))
	for _, dir := range []string{staging, folder} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	part, err := os.CreateTemp(staging, "")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	_, err = part.Write(document)
	// CreateTemp makes it unreadable for others, such as the agent; the bytes go to the disk first.
	err = errors.Join(err, part.Chmod(0o644), part.Sync(), part.Close())
	if err != nil {
		return err
	}
	final := filepath.Join(folder, name)
	if _, err := os.Lstat(final); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s is there already", final), err)
	}
	if err := os.Rename(part.Name(), final); err != nil {
		return err
	}
	return syncDirectory(folder) // then the name
}

func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: write SPOOL-DIR NAME.json < document")
		os.Exit(2)
	}
	document, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = Put(os.Args[1], os.Args[2], document)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
